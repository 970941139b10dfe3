// A limit on the number of threads that do work for which each needs memory.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>

namespace heed { inline namespace v0 {

// Places for as many threads as there is memory for, which is determined as they come. Memory of
// earlier threads is kept and used again by later ones.
class Places {
 public:
  // `has_room` returns true if there is memory for `count` more threads now.
  explicit Places(bool (*has_room)(int count)) : has_room_(has_room) {}

  enum class Place { kNone, kNew, kUsed };

  // Waits while all places are taken and there is no room for another. Returns kNone if there has
  // never been room for one.
  Place enter();
  void leave(Place place) noexcept;

  // To be called around a fork, which then finds no place taken and no lock held by another thread:
  // close() waits until all places are left and lets no thread enter. The new process begins
  // without the threads that waited.
  void close();
  void open_in_parent();
  void open_in_child();

 private:
  bool take_known() noexcept;

  bool (*has_room_)(int count);
  std::atomic<int> num_known_ = 0;  // the number of places
  std::atomic<int> num_taken_ = 0;  // the number of places that are taken
  std::atomic<int> num_waiting_ = 0;
  std::mutex mutex_;
  std::condition_variable left_;
  int num_closed_ = 0;  // the number of known places while they are closed
  // The number of places taken for the first time, whose memory may not be in use yet.
  int num_new_ = 0;
};

}}  // namespace heed::v0
