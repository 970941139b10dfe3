#include "core/places.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>
#include <vector>

namespace heed { namespace {

// The available room; each new place takes one unit.
std::atomic<int> room = 0;
bool has_room(int count) { return room.load() >= count; }

void take_room(Places::Place place) {
  if (place == Places::Place::kNew) room.fetch_sub(1);
}

TEST(Places, ThereIsNoneWithoutRoom) {
  room = 0;
  Places places(has_room);
  EXPECT_EQ(places.enter(), Places::Place::kNone);
  room = 1;
  EXPECT_EQ(places.enter(), Places::Place::kNew);
}

TEST(Places, ThoseThatWereTakenBeforeAreUsedAgain) {
  room = 3;  // while a thread is in a new place there must be room for that one too
  Places places(has_room);
  for (int round = 0; round < 3; ++round) {
    const Places::Place first = places.enter();
    take_room(first);
    EXPECT_EQ(first, round == 0 ? Places::Place::kNew : Places::Place::kUsed);
    const Places::Place second = places.enter();
    take_room(second);
    EXPECT_EQ(second, round == 0 ? Places::Place::kNew : Places::Place::kUsed);
    places.leave(first);
    places.leave(second);
  }
  EXPECT_EQ(room, 1);
}

// A caller that was promised room has not taken it yet.
TEST(Places, RoomIsPromisedOnce) {
  room = 1;
  Places places(has_room);
  const Places::Place first = places.enter();
  EXPECT_EQ(first, Places::Place::kNew);
  std::atomic<bool> is_in = false;
  std::thread second([&] {
    const Places::Place place = places.enter();
    is_in = true;
    EXPECT_EQ(place, Places::Place::kUsed);
    places.leave(place);
  });
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(is_in);
    std::this_thread::yield();
  }
  take_room(first);
  places.leave(first);
  second.join();
  EXPECT_TRUE(is_in);
}

TEST(Places, NoMoreThreadsAreInThanThereIsRoomFor) {
  constexpr int kThreads = 6;
  constexpr int kRoom = 2;
  room = kRoom;
  Places places(has_room);
  std::atomic<int> num_in = 0;
  std::atomic<int> most_in = 0;
  std::latch all_here(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      all_here.arrive_and_wait();
      for (int i = 0; i < 500; ++i) {
        const Places::Place place = places.enter();
        take_room(place);
        const int now = num_in.fetch_add(1) + 1;
        int most = most_in.load();
        while (most < now && !most_in.compare_exchange_weak(most, now)) {
        }
        num_in.fetch_sub(1);
        places.leave(place);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most_in, kRoom);
  EXPECT_GE(room, 0);
}

// A fork waits for those inside, and lets nobody enter until it is over.
TEST(Places, StayClosedUntilTheyAreOpened) {
  room = 2;
  Places places(has_room);
  const Places::Place first = places.enter();
  take_room(first);
  std::atomic<bool> is_closed = false;
  std::atomic<bool> is_over = false;
  std::thread fork([&] {
    places.close();
    is_closed = true;
    is_over.wait(false);
    places.open_in_parent();
  });
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(is_closed);
    std::this_thread::yield();
  }
  std::thread leaves([&] { places.leave(first); });
  while (!is_closed) std::this_thread::yield();
  std::atomic<bool> is_in = false;
  std::thread second([&] {
    const Places::Place place = places.enter();
    is_in = true;
    EXPECT_EQ(place, Places::Place::kUsed);
    places.leave(place);
  });
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(is_in);
    std::this_thread::yield();
  }
  is_over = true;
  is_over.notify_one();
  fork.join();
  leaves.join();
  second.join();
}

TEST(Places, OfAForkedProcessAreThoseThatWereKnown) {
  room = 1;
  Places places(has_room);
  const Places::Place first = places.enter();
  take_room(first);
  places.leave(first);
  places.close();
  places.open_in_child();
  const Places::Place place = places.enter();
  EXPECT_EQ(place, Places::Place::kUsed);
  places.leave(place);
}

}  // namespace
}  // namespace heed
