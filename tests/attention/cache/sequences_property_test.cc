// Random histories of sequences in one pool, compared with vectors of positions.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attention/cache/drawn_cache.h"
#include "attention/cache/model.h"
#include "attention/kernels/decode/stored_tile.h"
#include "heed/attention/kv_cache.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing_support::Bounded;
using testing_support::draw_bounds;
using testing_support::draw_config;
using testing_support::draw_end;
using testing_support::drawn;
using testing_support::ModelSequence;
using testing_support::normal;
using testing_support::same_bits;

// A sequence, its reference, and its tokens.
struct Pair {
  KvSequence found;
  ModelSequence expected;
  ModelSequence given;
};

// A random history of the sequences of a pool; each step is drawn when it is taken.
class Life {
 public:
  Life(std::int64_t most_pages, Bounded bounded)
      : bounded_(bounded),
        config_(draw_config(most_pages)),
        as_given_(config_),
        group_(drawn<std::int64_t>(1, 4)),
        pool_(config_) {
    as_given_.key_storage = as_given_.value_storage = KvStorage::kFloat32;
    add(draw_bounds(config_, bounded_));
  }

  void step() {
    Pair& pair = pairs_[drawn<std::size_t>(0, pairs_.size())];
    switch (drawn<int>(0, 12)) {
      case 0:
        return add(draw_bounds(config_, bounded_));
      case 1:
        return fork(pair);
      case 2:
        return truncate(pair);
      case 3:
        return accept(pair);
      case 4:
        return end();
      case 5:
        return attend_to_all();
      case 6:
      case 7:
      case 8:
        return attend_to(pair);
      default:
        if (!pair.expected.state().is_bounded()) return append(pair);
        if (drawn<int>(0, 3) == 0) return append_to_border(pair);
        // A bounded sequence forgets positions only after many more.
        for (int i = drawn<int>(1, 8); i > 0; --i) append(pair);
    }
  }

  // Adds sequences of more than a chunk of keys, with shared prefixes.
  void begin_long() {
    add({});
    append(pairs_.back(), drawn<std::int64_t>(1000, 2300));
  }
  void step_of_long_ones() {
    Pair& pair = pairs_[drawn<std::size_t>(0, pairs_.size())];
    switch (drawn<int>(0, 6)) {
      case 0:
      case 1:
        return fork(pair);
      case 2:
        return truncate(pair);
      case 3:
        return append(pair, drawn<std::int64_t>(0, 40));
      default:
        return attend_to_all();
    }
  }

  // Checks the contents, and that the pages of no sequence are free.
  void check() {
    std::int64_t most_pages = 0;
    for (const Pair& pair : pairs_) {
      RC_ASSERT(pair.found.length() == pair.expected.length());
      most_pages += pair.found.num_pages();
      if (!is_rotated()) check_stored(pair);
    }
    RC_ASSERT(pool_.pages_in_use() <= most_pages);
    RC_ASSERT(pool_.pages_in_use() + pool_.free_pages() == config_.max_pages);
  }

 private:
  bool is_quantised() const {
    return kernels::is_quantised(config_.key_storage) ||
           kernels::is_quantised(config_.value_storage);
  }
  bool is_rotated() const {
    return config_.key_storage == KvStorage::kInt4 || config_.value_storage == KvStorage::kInt4;
  }

  void add(const KvBounds& bounds) {
    pairs_.push_back({KvSequence(pool_, bounds), ModelSequence(config_, bounds),
                      ModelSequence(as_given_, bounds)});
  }
  void end() {
    if (pairs_.size() == 1) return;
    pairs_.erase(pairs_.begin() + drawn<std::int64_t>(0, std::ssize(pairs_)));
  }

  void append(Pair& pair) {
    const std::int64_t most = pair.found.bounds().window == kUnbounded
                                  ? drawn<std::int64_t>(1, 150)
                                  : pair.found.bounds().max_append + 1;
    append(pair, drawn<std::int64_t>(0, most + 1));
  }
  void append_to_border(Pair& pair) {
    const std::int64_t most = pair.found.bounds().max_append;
    for (std::int64_t n = pair.expected.state().to_border(config_.page_size); n > 0; n -= most) {
      append(pair, std::min(n, most));
    }
  }
  void append(Pair& pair, std::int64_t n) {
    const auto key = normal<float>({config_.num_kv_heads, n, config_.head_dim}, ++seed_);
    const auto value = normal<float>({config_.num_kv_heads, n, *config_.value_dim}, ++seed_);
    const KvBounds bounds = pair.found.bounds();
    const std::int64_t free = pool_.free_pages();
    try {
      pair.found.append(key, value);
    } catch (const InvalidArgument&) {
      RC_ASSERT(bounds.window != kUnbounded && n > bounds.max_append);
      return;
    } catch (const OutOfPages& error) {
      RC_ASSERT(error.wanted() > error.free());
      RC_ASSERT(pool_.free_pages() == free);
      return;
    }
    RC_ASSERT(bounds.window == kUnbounded || n <= bounds.max_append);
    pair.expected.append(key, value);
    pair.given.append(key, value);
  }

  void fork(const Pair& pair) {
    const std::int64_t n = draw_end(pair.expected.state(), config_.page_size);
    try {
      KvSequence fork = pair.found.fork(n);
      RC_ASSERT(pair.expected.state().can_truncate(n));
      Pair copy{std::move(fork), pair.expected, pair.given};
      copy.expected.truncate(n);
      copy.given.truncate(n);
      pairs_.push_back(std::move(copy));
    } catch (const InvalidArgument&) {
      RC_ASSERT(!pair.expected.state().can_truncate(n));
    }
  }

  void truncate(Pair& pair) {
    const std::int64_t n =
        drawn<int>(0, 20) == 0 ? 0 : draw_end(pair.expected.state(), config_.page_size);
    try {
      n == 0 ? pair.found.reset() : pair.found.truncate(n);
      RC_ASSERT(pair.expected.state().can_truncate(n));
      pair.expected.truncate(n);
      pair.given.truncate(n);
    } catch (const InvalidArgument&) {
      RC_ASSERT(!pair.expected.state().can_truncate(n));
    }
  }

  void accept(Pair& pair) {
    const std::int64_t nodes =
        drawn<std::int64_t>(0, std::min<std::int64_t>(pair.expected.length(), 40) + 1);
    std::vector<std::int64_t> path;
    for (std::int64_t node = 0; node < nodes; ++node) {
      if (*rc::gen::arbitrary<bool>()) path.push_back(node);
    }
    try {
      pair.found.accept(nodes, path);
    } catch (const InvalidArgument&) {
      RC_ASSERT(!pair.expected.state().can_accept(nodes, path));
      return;
    } catch (const OutOfPages&) {
      return;
    }
    RC_ASSERT(pair.expected.state().can_accept(nodes, path));
    pair.expected.accept(nodes, path);
    pair.given.accept(nodes, path);
  }

  AttentionOptions draw_options() {
    AttentionOptions options;
    options.mask = *rc::gen::element(
        Mask(), causal(), causal_bottom_right(), sliding_window(9, 0),
        causal() & Mask::where([](auto, auto, auto q, auto k) { return (q + k) % 3 != 0; }));
    if (*rc::gen::arbitrary<bool>()) return options;
    if (*rc::gen::arbitrary<bool>()) options.softcap = 2;
    if (*rc::gen::arbitrary<bool>()) {
      slopes_ = normal<float>({group_ * config_.num_kv_heads}, 3);
      options.alibi_slopes = slopes_.view();
    }
    if (*rc::gen::arbitrary<bool>()) options.dropout = {.probability = 0.2F, .seed = 5};
    return options;
  }

  void attend_to(const Pair& pair) {
    const std::int64_t n = drawn<std::int64_t>(
        0, std::min<std::int64_t>(pair.expected.length(), drawn<int>(1, 70)) + 1);
    const auto query =
        normal<float>({1, group_ * config_.num_kv_heads, n, config_.head_dim}, ++seed_);
    const AttentionOptions options = draw_options();
    const bool can = n == 0 || pair.expected.state().keeps_for(pair.expected.length() - n);
    try {
      const auto found = attend_with_lse(query, pair.found, options);
      RC_ASSERT(can);
      const auto expected = expected_of(pair, query, options);
      RC_ASSERT(same_bits(found.out, expected.out));
      RC_ASSERT(same_bits(found.lse, expected.lse));
    } catch (const InvalidArgument&) {
      RC_ASSERT(!can);
    }
  }

  void attend_to_all() {
    std::vector<const KvSequence*> sequences;
    std::vector<const Pair*> asked;
    std::vector<std::int64_t> boundaries{0};
    for (const Pair& pair : pairs_) {
      const std::int64_t n =
          drawn<std::int64_t>(0, std::min<std::int64_t>(pair.expected.length(), 20) + 1);
      if (n > 0 && !pair.expected.state().keeps_for(pair.expected.length() - n)) continue;
      sequences.push_back(&pair.found);
      asked.push_back(&pair);
      boundaries.push_back(boundaries.back() + n);
    }
    const auto query = normal<float>(
        {boundaries.back(), group_ * config_.num_kv_heads, config_.head_dim}, ++seed_);
    const AttentionOptions options = draw_options();
    const auto found = attend_with_lse(query, KvBatch{sequences, boundaries}, options);
    for (std::size_t i = 0; i < asked.size(); ++i) {
      const auto mine = [&](const auto& packed) {
        return to_tensor(
            packed.view().slice(0, boundaries[i], boundaries[i + 1]).permute({1, 0, 2}).to_rank(4));
      };
      const auto expected = expected_of(*asked[i], mine(query), options);
      RC_ASSERT(same_bits(mine(found.out), expected.out));
    }
  }

  // Computed by attention(); for quantised storage, by a sequence with a single append.
  AttentionOutput<float> expected_of(const Pair& pair, const Tensor<float>& query,
                                     const AttentionOptions& options) const {
    if (!is_quantised()) {
      return attention_with_lse(query, pair.expected.key(), pair.expected.value(),
                                pair.expected.options(options, query.extent(2)));
    }
    KvConfig whole = config_;
    whole.page_size = 128;
    whole.max_pages = kUnbounded;
    KvSequence sequence(whole);
    sequence.append(pair.given.key(), pair.given.value());
    AttentionOptions all = pair.given.options(options, query.extent(2));
    all.query_offset = 0;
    return attend_with_lse(query, sequence, all);
  }

  // Checks every kept position; forgotten ones are 0.
  static void check_stored(const Pair& pair) {
    const KvTensors found = pair.found.dequantised();
    check_side(pair, found.key, pair.expected.key());
    check_side(pair, found.value, pair.expected.value());
  }
  static void check_side(const Pair& pair, const Tensor<float>& found, Tensor<float> expected) {
    for (std::int64_t k = 0; k < pair.expected.length(); ++k) {
      if (!pair.expected.state().is_gone(k)) continue;
      for (std::int64_t h = 0; h < expected.extent(1); ++h) {
        std::fill_n(&expected(0, h, k, 0), expected.extent(3), 0.0F);
      }
    }
    RC_ASSERT(same_bits(found, std::move(expected).reshaped(found.shape())));
  }

  Bounded bounded_;
  KvConfig config_;
  KvConfig as_given_;
  std::int64_t group_;
  KvPool pool_;
  std::vector<Pair> pairs_;
  Tensor<float> slopes_;
  std::uint32_t seed_ = 0;
};

void check_life(std::int64_t most_pages, Bounded bounded) {
  Life life(most_pages, bounded);
  const int steps = drawn<int>(1, 60);
  for (int i = 0; i < steps; ++i) {
    life.step();
    life.check();
  }
}

TEST(KvCacheProperties, LivesOfSequences) {
  EXPECT_TRUE(
      rc::check("sequences are vectors of positions", [] { check_life(40, Bounded::kSome); }));
}

TEST(KvCacheProperties, LivesOfSequencesThatForget) {
  EXPECT_TRUE(
      rc::check("sequences are vectors of positions", [] { check_life(40, Bounded::kAll); }));
}

TEST(KvCacheProperties, LivesOfSequencesThatShareLongBeginnings) {
  EXPECT_TRUE(rc::check("sequences are vectors of positions", [] {
    Life life(1000, Bounded::kSome);
    life.begin_long();
    const int steps = drawn<int>(1, 12);
    for (int i = 0; i < steps; ++i) life.step_of_long_ones();
    life.check();
  }));
}

}  // namespace
}  // namespace heed
