// Draws a corpus and divides it into parts.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <unordered_set>
#include <utility>
#include <vector>

#include "heed/core/error.h"
#include "heed/core/random.h"
#include "heed/tasks/corpus.h"

namespace heed { inline namespace v0 { namespace tasks {

// Whole numbers from a separate random stream, the same on every machine.
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

// Distinct keys, in the order in which they were found.
template <class Key>
class DifferentKeys {
 public:
  explicit DifferentKeys(std::int64_t wanted) : wanted_(wanted) {}

  // Draws until all keys are found or `patience` draws in a row found no new key.
  template <class Draw>
  void draw(int patience, Draw draw_key) {
    for (int failures = 0; num_missing() > 0 && failures < patience;) {
      failures = add(draw_key()) ? 0 : failures + 1;
    }
  }

  bool add(Key key) {
    if (!seen_.insert(key).second) return false;
    keys_.push_back(std::move(key));
    return true;
  }

  bool has(const Key& key) const { return seen_.count(key) != 0; }
  std::int64_t num_missing() const { return wanted_ - static_cast<std::int64_t>(keys_.size()); }

  // Returns the keys in random order: the rare ones, which are found early, must not all end up in
  // one part.
  std::vector<Key> shuffled(Draws& draws) && {
    draws.shuffle(keys_);
    return std::move(keys_);
  }

 private:
  std::int64_t wanted_;
  std::unordered_set<Key> seen_;
  std::vector<Key> keys_;
};

[[noreturn]] inline void throw_too_few(const char* task, std::int64_t total,
                                       std::int64_t different) {
  throw InvalidArgument(fmt::format("{}: {} examples are asked for, but only {} are different",
                                    task, total, different));
}

// Distinct keys, as many as all parts have examples, in random order.
template <class Key, class Draw>
std::vector<Key> draw_keys(const char* task, const SplitSizes& sizes, Draws& draws, Draw draw) {
  constexpr int kPatience = 100'000;
  const std::int64_t total = checked_total(task, sizes);
  DifferentKeys<Key> keys(total);
  keys.draw(kPatience, draw);
  if (keys.num_missing() > 0) throw_too_few(task, total, total - keys.num_missing());
  return std::move(keys).shuffled(draws);
}

// Distinct keys below `bound`, as many as all parts have examples, in random order. Once a draw
// rarely finds a new key, the remaining keys are taken in random order: drawing the last of a
// million would take minutes.
template <class Draw>
std::vector<std::int64_t> draw_numbers(const char* task, const SplitSizes& sizes, Draws& draws,
                                       std::int64_t bound, Draw draw) {
  constexpr int kPatience = 200;
  const std::int64_t total = checked_total(task, sizes);
  if (total > bound) throw_too_few(task, total, bound);
  DifferentKeys<std::int64_t> keys(total);
  keys.draw(kPatience, draw);
  if (keys.num_missing() > 0) {
    std::vector<std::int64_t> left;
    for (std::int64_t number = 0; number < bound; ++number) {
      if (!keys.has(number)) left.push_back(number);
    }
    draws.shuffle(left);
    left.resize(static_cast<std::size_t>(keys.num_missing()));
    for (const std::int64_t number : left) keys.add(number);
  }
  return std::move(keys).shuffled(draws);
}

// The first keys make the training set, the next ones the other parts.
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

}}}  // namespace heed::v0::tasks
