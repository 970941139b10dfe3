// Bounded sequences, with windows and sinks of 0, 1 and a page: they stay correct at a page border
// and one position before and after it, and after every allowed rewind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "attention/cache/model.h"
#include "heed/attention/kv_cache.h"

namespace heed { namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::ModelLength;

constexpr std::int64_t kPage = 16;

// A sequence with a different number at each position, and its expected contents.
struct Numbered {
  KvSequence found;
  ModelLength length;
  std::vector<float> numbers;

  Numbered(KvPool& pool, const KvBounds& bounds) : found(pool, bounds), length(bounds) {}
  Numbered(const Numbered& other, std::int64_t n)
      : found(other.found.fork(n)), length(other.length), numbers(other.numbers) {
    length.truncate(n);
    numbers.resize(static_cast<std::size_t>(n));
  }

  void append(std::int64_t n) {
    Tensor<float> added({1, n, 1});
    for (float& number : added.elements()) {
      number = static_cast<float>(++last);
      numbers.push_back(number);
    }
    found.append(added, added);
    length.append(n);
  }
  void accept(std::int64_t nodes, const std::vector<std::int64_t>& path) {
    found.accept(nodes, path);
    const std::int64_t base = length.length() - nodes;
    for (std::size_t i = 0; i < path.size(); ++i) {
      numbers[static_cast<std::size_t>(base) + i] =
          numbers[static_cast<std::size_t>(base + path[i])];
    }
    length.truncate(base + std::ssize(path));
    numbers.resize(static_cast<std::size_t>(length.length()));
  }
  // Truncates to the last page border where that is allowed.
  void truncate_to_last_border() {
    const std::int64_t border = length.length() / kPage * kPage;
    if (!length.can_truncate(border)) return;
    found.truncate(border);
    length.truncate(border);
    numbers.resize(static_cast<std::size_t>(border));
  }
  // True if keys and values are as expected, with 0 at forgotten positions.
  bool is_right() const {
    if (found.length() != length.length()) return false;
    const KvTensors all = found.dequantised();
    for (std::int64_t k = 0; k < length.length(); ++k) {
      const float expected = length.is_gone(k) ? 0 : numbers[static_cast<std::size_t>(k)];
      if (all.key(0, k, 0) != expected || all.value(0, k, 0) != expected) return false;
    }
    return true;
  }

  static inline int last = 0;
};

std::string text_of(const KvBounds& bounds) {
  return "window " + std::to_string(bounds.window) + ", sinks " + std::to_string(bounds.sinks) +
         ", max_append " + std::to_string(bounds.max_append) + ", rewind " +
         std::to_string(bounds.rewind);
}

// Calls visit(pool, sequence) for sequences of all bounds, at lengths around page borders.
void for_each_at_a_border(const std::function<void(KvPool&, const Numbered&)>& visit) {
  for (const std::int64_t window : {1, 2, 16}) {
    for (const std::int64_t sinks : {0, 1, 16, 17}) {
      for (const std::int64_t max_append : {1, 17}) {
        for (const std::int64_t rewind : {0, 1, 17}) {
          const KvBounds bounds{
              .window = window, .sinks = sinks, .max_append = max_append, .rewind = rewind};
          SCOPED_TRACE(text_of(bounds));
          KvPool pool({.head_dim = 1, .page_size = kPage});
          Numbered sequence(pool, bounds);
          while (sequence.length.length() <= 3 * kPage && !testing::Test::HasFailure()) {
            sequence.append(max_append);
            const std::int64_t slot = (sequence.length.length() + 1) % kPage;
            if (slot <= 2 || max_append > 1) visit(pool, sequence);
          }
        }
      }
    }
  }
}

TEST(KvBounds, AfterEveryRewindASequenceGoesOn) {
  for_each_at_a_border([](KvPool& pool, const Numbered& sequence) {
    const std::int64_t before = pool.pages_in_use();
    for (const std::int64_t n : sequence.length.ends()) {
      Numbered fork(sequence, n);
      EXPECT_TRUE(fork.is_right()) << sequence.length.length() << " back to " << n;
      for (std::int64_t i = 0; i < 2; ++i) fork.append(1);
      EXPECT_TRUE(fork.is_right()) << sequence.length.length() << " back to " << n << " and on";
      fork.truncate_to_last_border();
      fork.append(1);
      EXPECT_TRUE(fork.is_right()) << n << " back to " << fork.length.length() - 1;
    }
    EXPECT_EQ(pool.pages_in_use(), before) << "a fork kept pages";
    EXPECT_TRUE(sequence.is_right()) << "a fork wrote to " << sequence.length.length();
  });
}

TEST(KvBounds, WhatIsGoneIsNotAskedFor) {
  for_each_at_a_border([](KvPool&, const Numbered& sequence) {
    const ModelLength& length = sequence.length;
    for (std::int64_t n = 1; n < length.length(); ++n) {
      // Checks the first and the last length that is not allowed.
      if (length.can_truncate(n) || !(length.can_truncate(n - 1) || length.can_truncate(n + 1)))
        continue;
      EXPECT_THAT([&] { (void)sequence.found.fork(n); },
                  ThrowsMessage<InvalidArgument>(HasSubstr("are gone")));
    }
  });
}

TEST(KvBounds, APathIsAcceptedWhereItIsThere) {
  int accepted = 0;
  int refused = 0;
  for_each_at_a_border([&](KvPool&, const Numbered& sequence) {
    const std::int64_t length = sequence.length.length();
    for (const std::int64_t nodes : {std::int64_t{2}, std::int64_t{3}, kPage, kPage + 2, length}) {
      if (nodes < 2 || nodes > length) continue;
      for (const auto& path :
           {std::vector<std::int64_t>{nodes - 1}, {0, nodes - 1}, {nodes / 3, nodes - 1}, {}}) {
        Numbered fork(sequence, length);
        if (sequence.length.can_accept(nodes, path)) {
          fork.accept(nodes, path);
          ++accepted;
        } else {
          EXPECT_THROW(fork.found.accept(nodes, path), InvalidArgument);
          ++refused;
        }
        EXPECT_TRUE(fork.is_right()) << "of " << nodes << " nodes at the end of " << length;
        fork.append(1);
        EXPECT_TRUE(fork.is_right()) << "of " << nodes << " nodes at the end of " << length;
      }
    }
    EXPECT_TRUE(sequence.is_right()) << "a fork wrote to " << length;
  });
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace heed
