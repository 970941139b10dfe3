// How a corpus is drawn and divided.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <unordered_set>
#include <utility>
#include <vector>

#include "heed/error.h"
#include "heed/random.h"
#include "heed/tasks/corpus.h"

namespace heed::inline v0::tasks {

// Whole numbers from a stream of their own, the same on every machine.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : generator_(seed) {}

  // 0 ≤ result < bound
  std::int64_t below(std::int64_t bound) { return generator_.randint(0, bound, {1})(0); }
  // low ≤ result ≤ high
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return generator_.randint(low, high + 1, {1})(0);
  }

  template <class V>
  void shuffle(std::vector<V>& elements) {
    const auto order = generator_.randperm(static_cast<std::int64_t>(elements.size()));
    std::vector<V> shuffled;
    shuffled.reserve(elements.size());
    for (const std::int64_t index : order.elements()) {
      shuffled.push_back(std::move(elements[static_cast<std::size_t>(index)]));
    }
    elements = std::move(shuffled);
  }

 private:
  TorchGenerator generator_;
};

inline std::int64_t checked_total(const char* task, const SplitSizes& sizes) {
  constexpr std::int64_t kMost = 100'000'000;
  for (const std::int64_t size : {sizes.train, sizes.validation, sizes.test}) {
    if (size >= 0 && size <= kMost) continue;
    throw InvalidArgument(
        fmt::format("{}: a part has {} examples, expected 0 to {}", task, size, kMost));
  }
  return sizes.train + sizes.validation + sizes.test;
}

// As many different keys as all parts have examples, in random order: the rare ones, which are
// found early, must not all end up in one part.
template <class Key, class Draw>
std::vector<Key> draw_keys(const char* task, const SplitSizes& sizes, Draws& draws, Draw draw) {
  constexpr int kPatience = 100'000;  // draws in a row that find nothing new
  const std::int64_t total = checked_total(task, sizes);
  std::unordered_set<Key> seen;
  std::vector<Key> keys;
  int failures = 0;
  while (static_cast<std::int64_t>(keys.size()) < total) {
    Key key = draw();
    if (seen.insert(key).second) {
      keys.push_back(std::move(key));
      failures = 0;
    } else if (++failures == kPatience) {
      throw InvalidArgument(fmt::format("{}: {} examples are asked for, but only {} are different",
                                        task, total, keys.size()));
    }
  }
  draws.shuffle(keys);
  return keys;
}

// The first keys make the training set, and so on.
template <class Key, class Make>
Corpus corpus_of(const std::vector<Key>& keys, const SplitSizes& sizes, Make make) {
  Corpus corpus;
  for (const Key& key : keys) {
    const auto has = [](const std::vector<Example>& part, std::int64_t size) {
      return static_cast<std::int64_t>(part.size()) < size;
    };
    auto& part = has(corpus.train, sizes.train)             ? corpus.train
                 : has(corpus.validation, sizes.validation) ? corpus.validation
                                                            : corpus.test;
    part.push_back(make(key));
  }
  return corpus;
}

}  // namespace heed::inline v0::tasks
