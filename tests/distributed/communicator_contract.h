// The contract of every communicator, for any number of ranks. All ranks call each function.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <new>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "heed/core/cancellation.h"
#include "heed/core/error.h"
#include "heed/distributed/communicator.h"

namespace heed::testing_support {

inline std::span<const std::byte> bytes_of(const std::vector<int>& numbers) {
  return std::as_bytes(std::span(numbers));
}
inline std::span<std::byte> room_in(std::vector<int>& numbers) {
  return std::as_writable_bytes(std::span(numbers));
}

// Returns numbers that identify a rank and a message.
inline std::vector<int> numbers_of(int rank, int message, std::size_t count) {
  std::vector<int> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 1'000'000 * rank + 10'000 * message);
  return numbers;
}

inline void check_order_of_messages(Communicator& ranks) {
  constexpr std::size_t kCount = 5000;
  if (ranks.size() == 1) return;
  if (ranks.rank() == 0) {
    const std::vector<int> a = numbers_of(0, 1, kCount), b = numbers_of(0, 2, kCount), c{7};
    const auto first = ranks.send(bytes_of(a), 1, 3);
    const auto second = ranks.send(bytes_of(b), 1, 3);
    const auto other = ranks.send(bytes_of(c), 1, 32767);
    const auto empty = ranks.send({}, 1, 0);
    for (const auto* transfer : {&first, &second, &other, &empty}) (*transfer)->wait();
    other->wait();
  } else if (ranks.rank() == 1) {
    std::vector<int> a(kCount), b(kCount), c(1);
    ranks.receive(room_in(c), 0, 32767)->wait();
    ranks.receive(room_in(a), 0, 3)->wait();
    ranks.receive(room_in(b), 0, 3)->wait();
    ranks.receive({}, 0, 0)->wait();
    EXPECT_EQ(a, numbers_of(0, 1, kCount));
    EXPECT_EQ(b, numbers_of(0, 2, kCount));
    EXPECT_EQ(c, std::vector<int>{7});
  }
}

// A message completes when its state is queried.
inline void check_asking(Communicator& ranks) {
  const int size = ranks.size();
  if (size == 1) return;
  for (const std::size_t count : {std::size_t{0}, std::size_t{3}, std::size_t{70'000}}) {
    const std::vector<int> mine = numbers_of(ranks.rank(), 1, count);
    const int before = (ranks.rank() + size - 1) % size;
    std::vector<int> got(count);
    const auto receive = ranks.receive(room_in(got), before, 4);
    std::vector<int> nothing;
    const auto late = ranks.receive(room_in(nothing), before, 5);
    EXPECT_FALSE(late->is_done());
    const auto send = ranks.send(bytes_of(mine), (ranks.rank() + 1) % size, 4);
    while (!receive->is_done() || !send->is_done()) std::this_thread::yield();
    EXPECT_EQ(got, numbers_of(before, 1, count));
    receive->wait();
    std::vector<int> all(static_cast<std::size_t>(size)), one{1};
    ranks.gather(bytes_of(one), room_in(all));  // all have queried before any sends
    const auto last = ranks.send(bytes_of(nothing), (ranks.rank() + 1) % size, 5);
    late->wait();
    EXPECT_TRUE(late->is_done());
  }
}

// All ranks send before any receives.
inline void check_ring(Communicator& ranks) {
  const int size = ranks.size();
  if (size == 1) return;
  const int before = (ranks.rank() + size - 1) % size;
  for (const std::size_t count : {std::size_t{1}, std::size_t{300}, std::size_t{70'000}}) {
    for (int round = 0; round < 5; ++round) {
      const std::vector<int> mine = numbers_of(ranks.rank(), round, count);
      std::vector<int> got(count);
      const auto receive = ranks.receive(room_in(got), before, 0);
      ranks.send(bytes_of(mine), (ranks.rank() + 1) % size, 0)->wait();
      receive->wait();
      EXPECT_EQ(got, numbers_of(before, round, count));
    }
  }
}

inline void check_broadcasts(Communicator& ranks) {
  constexpr int kNumMessages = 12;
  std::vector<std::vector<int>> messages(kNumMessages);
  std::vector<std::unique_ptr<Transfer>> transfers;
  for (int i = 0; i < kNumMessages; ++i) {
    const int root = i % ranks.size();
    auto& message = messages[static_cast<std::size_t>(i)];
    message = ranks.rank() == root ? numbers_of(root, i, 100) : std::vector<int>(100);
    transfers.push_back(ranks.broadcast(room_in(message), root));
  }
  for (int i = kNumMessages - 1; i >= 0; --i) {
    transfers[static_cast<std::size_t>(i)]->wait();
    EXPECT_EQ(messages[static_cast<std::size_t>(i)], numbers_of(i % ranks.size(), i, 100));
  }
}

inline void check_gathers(Communicator& ranks) {
  constexpr std::size_t kCount = 50;
  for (int round = 0; round < 10; ++round) {
    const std::vector<int> mine = numbers_of(ranks.rank(), round, kCount);
    std::vector<int> all(static_cast<std::size_t>(ranks.size()) * kCount);
    std::vector<int> expected;
    for (int rank = 0; rank < ranks.size(); ++rank) {
      for (const int number : numbers_of(rank, round, kCount)) expected.push_back(number);
    }
    ranks.gather(bytes_of(mine), room_in(all));
    EXPECT_EQ(all, expected);
  }
  ranks.gather({}, {});
}

inline void check_texts(Communicator& ranks) {
  const auto text_of = [](int rank) {
    return std::string(static_cast<std::size_t>(rank * 3), static_cast<char>('a' + rank));
  };
  const std::vector<std::string> texts = gather_texts(ranks, text_of(ranks.rank()));
  ASSERT_EQ(texts.size(), static_cast<std::size_t>(ranks.size()));
  for (int rank = 0; rank < ranks.size(); ++rank) {
    EXPECT_EQ(texts[static_cast<std::size_t>(rank)], text_of(rank));
  }
}

// All ranks throw the exception of the lowest rank that throws.
inline void check_run_on_all(Communicator& ranks) {
  using testing::HasSubstr;
  using testing::StrEq;
  using testing::ThrowsMessage;
  int num_done = 0;
  run_on_all(ranks, [&] { ++num_done; });
  EXPECT_EQ(num_done, 1);
  const int last = ranks.size() - 1;
  if (last < 2) return;
  const auto fail = [&](const auto& exception) {
    run_on_all(ranks, [&] {
      if (ranks.rank() == 1) throw exception;
      if (ranks.rank() == last) throw std::runtime_error("later");
    });
  };
  EXPECT_THAT([&] { fail(InvalidArgument("bad")); },
              ThrowsMessage<InvalidArgument>(StrEq("rank 1: bad")));
  EXPECT_THAT([&] { fail(Cancelled("stop")); }, ThrowsMessage<Cancelled>(StrEq("rank 1: stop")));
  EXPECT_THAT([&] { fail(IoError("no file")); },
              ThrowsMessage<std::runtime_error>(StrEq("rank 1: no file")));
  EXPECT_THAT([&] { fail(FormatError("a.txt", 3, "torn")); },
              ThrowsMessage<std::runtime_error>(StrEq("rank 1: a.txt: at byte 3: torn")));
  EXPECT_THAT([&] { fail(CommunicationError("lost")); },
              ThrowsMessage<CommunicationError>(StrEq("rank 1: lost")));
  EXPECT_THAT([&] { fail(5); }, ThrowsMessage<std::runtime_error>(HasSubstr("no std::exception")));
  EXPECT_THROW(fail(std::bad_alloc()), std::bad_alloc);
}

// If one rank throws before a nested call, all ranks throw in that call and out of both.
inline void check_nested_run_on_all(Communicator& ranks) {
  using testing::StrEq;
  using testing::ThrowsMessage;
  const int last = ranks.size() - 1;
  if (last == 0) return;
  int num_done = 0;
  const auto inner = [&] { run_on_all(ranks, [&] { ++num_done; }); };
  const auto outer = [&] {
    run_on_all(ranks, [&] {
      inner();
      if (ranks.rank() == last) throw InvalidArgument("bad");
      inner();
      inner();
    });
  };
  const std::string text = "rank " + std::to_string(last) + ": bad";
  EXPECT_THAT(outer, ThrowsMessage<InvalidArgument>(StrEq(text)));
  EXPECT_EQ(num_done, ranks.rank() == last ? 1 : 2);
  const auto twice = [&] {
    run_on_all(ranks, [&] { run_on_all(ranks, [] { throw Cancelled("stop"); }); });
  };
  EXPECT_THAT(twice, ThrowsMessage<Cancelled>(StrEq("rank 0: stop")));
  inner();
}

inline void check_contract(Communicator& ranks) {
  check_order_of_messages(ranks);
  check_asking(ranks);
  check_ring(ranks);
  check_broadcasts(ranks);
  check_gathers(ranks);
  check_texts(ranks);
  check_run_on_all(ranks);
  check_nested_run_on_all(ranks);
}

}  // namespace heed::testing_support
