// How many threads may at once do what takes memory for each of them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>

namespace heed { inline namespace v0 {

// As many as there is memory for, which is found out as they come. What the first ones took is
// kept: who comes later uses it again.
class Places {
 public:
  // `has_room` says whether memory for so many more could be had now.
  explicit Places(bool (*has_room)(int count)) : has_room_(has_room) {}

  enum class Place { kNone, kNew, kUsed };

  // Waits while all places are taken and there is no room for another; none where there never was
  // room for one.
  Place enter();
  void leave(Place place) noexcept;

 private:
  bool take_known() noexcept;

  bool (*has_room_)(int count);
  std::atomic<int> num_known_ = 0;  // places
  std::atomic<int> num_taken_ = 0;  // of them
  std::atomic<int> num_waiting_ = 0;
  std::mutex mutex_;
  std::condition_variable left_;
  int num_new_ = 0;  // taken for the first time, so that their memory may not yet be
};

}}  // namespace heed::v0
