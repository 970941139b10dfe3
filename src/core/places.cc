#include "core/places.h"

#include <chrono>
#include <memory>
#include <thread>

namespace heed { inline namespace v0 {

bool Places::take_known() noexcept {
  int taken = num_taken_.load();
  while (taken < num_known_.load()) {
    if (num_taken_.compare_exchange_weak(taken, taken + 1)) return true;
  }
  return false;
}

Places::Place Places::enter() {
  if (take_known()) return Place::kUsed;
  std::unique_lock lock(mutex_);
  num_waiting_.fetch_add(1);
  Place place = Place::kNone;
  for (;;) {
    if (take_known()) {
      place = Place::kUsed;
    } else if (has_room_(num_new_ + 1)) {
      ++num_new_;
      num_taken_.fetch_add(1);
      num_known_.fetch_add(1);
      place = Place::kNew;
    } else if (num_known_.load() > 0) {
      left_.wait(lock);
      continue;
    }
    num_waiting_.fetch_sub(1);
    return place;
  }
}

void Places::leave(Place place) noexcept {
  num_taken_.fetch_sub(1);
  if (place == Place::kUsed && num_waiting_.load() == 0) return;
  const std::lock_guard lock(mutex_);
  if (place == Place::kNew) --num_new_;
  left_.notify_one();
}

void Places::close() {
  mutex_.lock();
  num_closed_ = num_known_.exchange(0);
  while (num_taken_.load() > 0) std::this_thread::sleep_for(std::chrono::microseconds(20));
}

void Places::open_in_parent() {
  num_known_.store(num_closed_);
  left_.notify_all();
  mutex_.unlock();
}

void Places::open_in_child() {
  // The condition of before counts threads that this process does not have.
  std::construct_at(&left_);
  num_waiting_.store(0);
  num_new_ = 0;
  open_in_parent();
}

}}  // namespace heed::v0
