// Caches: the contents of sequences, and the bits of attention over them.
#include "heed/attention/kv_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "heed/core/parallel.h"
#include "support/options.h"
#include "support/refusal.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::converted;
using testing_support::elements_of;
using testing_support::Message;
using testing_support::normal;
using testing_support::Refuses;
using testing_support::same_bits;

constexpr std::int64_t kHeads = 4;
constexpr std::int64_t kKvHeads = 2;
constexpr std::int64_t kDim = 24;
constexpr std::int64_t kValueDim = 10;

KvConfig config(std::int64_t page_size = 128, std::int64_t max_pages = kUnbounded) {
  return {.num_kv_heads = kKvHeads,
          .head_dim = kDim,
          .value_dim = kValueDim,
          .page_size = page_size,
          .max_pages = max_pages};
}

// The tokens of a sequence and their queries.
struct Tokens {
  explicit Tokens(std::int64_t length, std::uint32_t seed = 1)
      : query(normal<float>({1, kHeads, length, kDim}, seed)),
        key(normal<float>({1, kKvHeads, length, kDim}, seed + 1)),
        value(normal<float>({1, kKvHeads, length, kValueDim}, seed + 2)) {}

  FloatView queries(std::int64_t begin, std::int64_t end) const {
    return query.view().slice(2, begin, end);
  }
  void append_to(KvSequence& sequence, std::int64_t begin, std::int64_t end) const {
    sequence.append(key.view().slice(2, begin, end), value.view().slice(2, begin, end));
  }

  Tensor<float> query;
  Tensor<float> key;
  Tensor<float> value;
};

// Returns rows begin ≤ q < end of [1, heads, length, dim].
Tensor<float> rows(const Tensor<float>& all, std::int64_t begin, std::int64_t end) {
  return to_tensor(all.view().slice(2, begin, end));
}

void expect_decoding_has_the_bits_of_prefill(const Tokens& tokens,
                                             const AttentionOptions& options) {
  const auto whole = attention_with_lse(tokens.query, tokens.key, tokens.value, options);
  for (const std::int64_t page_size : {16, 32, 64, 128}) {
    KvSequence sequence(config(page_size));
    std::int64_t at = 0;
    for (const std::int64_t count : {1, 1, 30, 1, 100, 1, 1, 1, 127, 1, 1, 35}) {
      tokens.append_to(sequence, at, at + count);
      const auto found = attend_with_lse(tokens.queries(at, at + count), sequence, options);
      EXPECT_TRUE(same_bits(found.out, rows(whole.out, at, at + count)))
          << options.mask.description() << " of " << at << " by pages of " << page_size;
      EXPECT_TRUE(same_bits(found.lse, to_tensor(whole.lse.view().slice(2, at, at + count))));
      EXPECT_TRUE(
          same_bits(found.lse_low, to_tensor(whole.lse_low.view().slice(2, at, at + count))));
      at += count;
    }
    EXPECT_EQ(at, 300);
  }
}

TEST(KvCache, DecodesWithTheBitsOfOnePrefill) {
  const Tokens tokens(300);
  const testing_support::Sizes sizes{.num_heads = kHeads,
                                     .num_kv_heads = kKvHeads,
                                     .q_len = 300,
                                     .kv_len = 300,
                                     .head_dim = kDim,
                                     .value_dim = kValueDim};
  expect_decoding_has_the_bits_of_prefill(tokens, {.mask = causal()});
  expect_decoding_has_the_bits_of_prefill(tokens, {.mask = sliding_window(70, 0)});
  std::uint64_t seed = 0;
  for (const auto& chosen : testing_support::alone_and_in_pairs(
           testing_support::options_where([](const testing_support::Option& option) {
             return option.is_option() && option.in_chunks;
           }))) {
    SCOPED_TRACE(to_string(chosen));
    testing_support::DrawnOptions<float> options(sizes, chosen, ++seed);
    options.hide(causal());
    expect_decoding_has_the_bits_of_prefill(tokens, *options);
  }
}

TEST(KvCache, TermsStandWhereTheQueriesStand) {
  const Tokens tokens(150);
  const auto bias = normal<float>({1, kHeads, 150, 150}, 9);
  const auto allowed = [](auto, auto, auto q, auto k) { return (q * 7 + k * 3) % 5 != 0; };
  AttentionOptions options{.mask = causal() & Mask::where(allowed),
                           .score_mod = ScoreMod([](auto score, auto, auto h, auto q, auto k) {
                             return score * static_cast<float>(1 + h) -
                                    static_cast<float>(q - k) * 0.01F;
                           })};
  options.bias = bias;
  const auto whole = attention(tokens.query, tokens.key, tokens.value, options);
  KvSequence sequence(config(16));
  tokens.append_to(sequence, 0, 150);
  options.bias = bias.view().slice(2, 110, 150);
  EXPECT_TRUE(
      same_bits(attend(tokens.queries(110, 150), sequence, options), rows(whole, 110, 150)));
}

TEST(KvCache, ThreadsAndABatchChangeNoBit) {
  const Tokens tokens(2300);
  const auto whole = attention_with_lse(tokens.query, tokens.key, tokens.value, {.mask = causal()});
  KvPool pool(config(64));
  std::vector<KvSequence> sequences;
  std::vector<const KvSequence*> pointers;
  std::vector<std::int64_t> boundaries{0};
  const std::int64_t lengths[] = {2300, 1, 700, 700, 2049};
  const std::int64_t counts[] = {1, 1, 0, 65, 3};
  for (int i = 0; i < 5; ++i) {
    sequences.emplace_back(pool);
    tokens.append_to(sequences.back(), 0, lengths[i]);
    boundaries.push_back(boundaries.back() + counts[i]);
  }
  Tensor<float> query({boundaries.back(), kHeads, kDim});
  for (int i = 0; i < 5; ++i) {
    pointers.push_back(&sequences[static_cast<std::size_t>(i)]);
    for (std::int64_t q = 0; q < counts[i]; ++q)
      for (std::int64_t h = 0; h < kHeads; ++h)
        for (std::int64_t d = 0; d < kDim; ++d)
          query(boundaries[static_cast<std::size_t>(i)] + q, h, d) =
              tokens.query(0, h, lengths[i] - counts[i] + q, d);
  }
  const int before = num_threads();
  for (const int threads : {1, 2, 5}) {
    set_num_threads(threads);
    const auto found = attend_with_lse(query, KvBatch{pointers, boundaries}, {.mask = causal()});
    for (std::size_t i = 0; i < 5; ++i) {
      const auto out = found.out.view().slice(0, boundaries[i], boundaries[i + 1]);
      const auto lse = found.lse.view().slice(1, boundaries[i], boundaries[i + 1]);
      EXPECT_TRUE(same_bits(to_tensor(out.permute({1, 0, 2}).to_rank(4)),
                            rows(whole.out, lengths[i] - counts[i], lengths[i])));
      EXPECT_TRUE(
          same_bits(to_tensor(lse.to_rank(3)),
                    to_tensor(whole.lse.view().slice(2, lengths[i] - counts[i], lengths[i]))));
      const auto low = found.lse_low.view().slice(1, boundaries[i], boundaries[i + 1]);
      EXPECT_TRUE(
          same_bits(to_tensor(low.to_rank(3)),
                    to_tensor(whole.lse_low.view().slice(2, lengths[i] - counts[i], lengths[i]))));
    }
  }
  set_num_threads(before);
}

TEST(KvCache, HalfPrecisionQueriesAndTokens) {
  const Tokens tokens(140);
  const auto query = converted<Float16>(tokens.query);
  const auto key = converted<Float16>(tokens.key);
  const auto value = converted<Float16>(tokens.value);
  const auto whole = attention(query, key, value, {.mask = causal()});
  for (const KvStorage storage : {KvStorage::kFloat32, KvStorage::kFloat16}) {
    KvConfig half = config(32);
    half.key_storage = half.value_storage = storage;
    KvSequence sequence(half);
    sequence.append(key, value);
    EXPECT_TRUE(same_bits(attend(query, sequence, {.mask = causal()}), whole));
  }
}

// A contiguous block of all keys and values of a head takes another path than separate pages.
TEST(KvCache, PagesThatFollowEachOtherHaveTheBitsOfPagesThatDoNot) {
  constexpr std::int64_t kLength = 700;
  for (const std::int64_t dim : {64, 128}) {
    const auto key = normal<float>({1, kKvHeads, kLength, dim}, 1);
    const auto value = normal<float>({1, kKvHeads, kLength, dim}, 2);
    for (const KvStorage storage :
         {KvStorage::kFloat32, KvStorage::kFloat16, KvStorage::kBFloat16, KvStorage::kInt8}) {
      KvPool pool({.num_kv_heads = kKvHeads,
                   .head_dim = dim,
                   .key_storage = storage,
                   .value_storage = storage});
      KvSequence together(pool);
      together.append(key, value);
      KvSequence apart(pool);
      KvSequence between(pool);
      for (std::int64_t at = 0; at < kLength; at += pool.config().page_size) {
        const std::int64_t end = std::min(at + pool.config().page_size, kLength);
        const auto some_keys = key.view().slice(2, at, end);
        const auto some_values = value.view().slice(2, at, end);
        apart.append(some_keys, some_values);
        between.append(some_keys, some_values);
      }
      for (const std::int64_t heads_per_key_head : {1, 2, 3, 4, 5}) {
        const auto query = normal<float>({1, kKvHeads * heads_per_key_head, 1, dim}, 3);
        const auto found = attend(query, together);
        EXPECT_TRUE(same_bits(found, attend(query, apart)))
            << dim << " " << to_string(storage) << " " << heads_per_key_head;
        if (storage != KvStorage::kFloat32) continue;
        EXPECT_TRUE(same_bits(found, attention(query, key, value)));
      }
    }
  }
}

TEST(KvCache, TokensOfAnyStrides) {
  const Tokens tokens(40);
  const auto key = to_tensor(tokens.key.view().select(0, 0).permute({1, 0, 2}));
  const auto value = to_tensor(tokens.value.view().select(0, 0).permute({1, 0, 2}));
  KvSequence sequence(config());
  sequence.append(key.view().permute({1, 0, 2}), value.view().permute({1, 0, 2}));
  EXPECT_TRUE(same_bits(sequence.dequantised().key, to_tensor(tokens.key.view().select(0, 0))));
  EXPECT_TRUE(same_bits(sequence.dequantised().value, to_tensor(tokens.value.view().select(0, 0))));
}

TEST(KvCache, AForkInTheMiddleOfAPageSharesUntilSomebodyWrites) {
  const Tokens tokens(100);
  const Tokens others(100, 11);
  KvPool pool(config(32));
  KvSequence first(pool);
  tokens.append_to(first, 0, 70);
  EXPECT_EQ(pool.pages_in_use(), 3);
  KvSequence second = first.fork(40);
  EXPECT_EQ(pool.pages_in_use(), 3);
  EXPECT_EQ(second.length(), 40);
  others.append_to(second, 40, 41);  // copies the second page
  EXPECT_EQ(pool.pages_in_use(), 4);
  tokens.append_to(first, 70, 71);  // writes to its own last page
  EXPECT_EQ(pool.pages_in_use(), 4);
  EXPECT_TRUE(same_bits(first.dequantised().key,
                        to_tensor(tokens.key.view().select(0, 0).slice(1, 0, 71))));
  auto expected = to_tensor(tokens.key.view().select(0, 0).slice(1, 0, 41));
  for (std::int64_t h = 0; h < kKvHeads; ++h)
    for (std::int64_t d = 0; d < kDim; ++d) expected(h, 40, d) = others.key(0, h, 40, d);
  EXPECT_TRUE(same_bits(second.dequantised().key, expected));
  { const KvSequence third = std::move(first); }
  EXPECT_EQ(pool.pages_in_use(), 2);
}

TEST(KvCache, TruncatingToNothingKeepsNothing) {
  const Tokens tokens(100);
  const Tokens others(50, 5);
  KvPool pool(config(16));
  for (const bool resets : {false, true}) {
    KvSequence sequence(pool);
    tokens.append_to(sequence, 0, 100);
    resets ? sequence.reset() : sequence.truncate(0);
    EXPECT_EQ(sequence.length(), 0);
    EXPECT_EQ(sequence.num_pages(), 0);
    EXPECT_EQ(pool.pages_in_use(), 0);
    others.append_to(sequence, 0, 50);
    EXPECT_TRUE(same_bits(attend(others.queries(0, 50), sequence),
                          attention(others.query, others.key, others.value)));
  }
}

TEST(KvCache, NothingStaleIsSeenBehindTheEnd) {
  const Tokens tokens(60);
  const Tensor<float> bad(
      {kKvHeads, 60, kDim},
      std::vector<float>(kKvHeads * 60 * kDim, std::numeric_limits<float>::quiet_NaN()));
  const Tensor<float> bad_value(
      {kKvHeads, 60, kValueDim},
      std::vector<float>(kKvHeads * 60 * kValueDim, std::numeric_limits<float>::infinity()));
  KvSequence sequence(config(32));
  sequence.append(bad, bad_value);
  sequence.truncate(0);
  tokens.append_to(sequence, 0, 5);
  sequence.append(bad, bad_value);
  sequence.truncate(5);
  EXPECT_TRUE(same_bits(attend(tokens.queries(2, 5), sequence, {.mask = causal()}),
                        rows(attention(tokens.queries(0, 5), tokens.key.view().slice(2, 0, 5),
                                       tokens.value.view().slice(2, 0, 5), {.mask = causal()}),
                             2, 5)));
}

TEST(KvCache, AcceptKeepsThePathOfATree) {
  const Tokens tokens(40);
  for (const KvStorage storage :
       {KvStorage::kFloat32, KvStorage::kBFloat16, KvStorage::kInt8, KvStorage::kInt4}) {
    KvConfig stored = config(16);
    stored.key_storage = stored.value_storage = storage;
    KvSequence sequence(stored);
    tokens.append_to(sequence, 0, 29);
    const auto before = sequence.dequantised();
    KvSequence fork = sequence.fork();
    const std::vector<std::int64_t> path{0, 3, 4, 8};
    sequence.accept(9, path);
    ASSERT_EQ(sequence.length(), 24);
    const auto after = sequence.dequantised();
    for (std::int64_t k = 0; k < 24; ++k) {
      const std::int64_t from = k < 20 ? k : 20 + path[static_cast<std::size_t>(k - 20)];
      EXPECT_TRUE(same_bits(to_tensor(after.key.view().select(1, k)),
                            to_tensor(before.key.view().select(1, from))));
      EXPECT_TRUE(same_bits(to_tensor(after.value.view().select(1, k)),
                            to_tensor(before.value.view().select(1, from))));
    }
    EXPECT_TRUE(same_bits(fork.dequantised().key, before.key)) << "the fork saw what was written";
    fork.accept(9, {});
    EXPECT_EQ(fork.length(), 20);
  }
}

TEST(KvCache, ATreeOfGuessesBecomesThePathThatWasAccepted) {
  constexpr std::int64_t kText = 130;
  const std::vector<std::int64_t> parents{-1, 0, 0, 2, -1, 4, 3};
  const auto nodes = static_cast<std::int64_t>(parents.size());
  const Tokens tokens(kText + nodes);
  KvPool pool(config(16));
  KvSequence sequence(pool);
  tokens.append_to(sequence, 0, kText + nodes);
  const Mask tree = Mask::tree(parents);
  EXPECT_TRUE(same_bits(attend(tokens.queries(kText, kText + nodes), sequence, {.mask = tree}),
                        rows(attention(tokens.query, tokens.key, tokens.value, {.mask = tree}),
                             kText, kText + nodes)));

  const std::vector<std::int64_t> path{0, 2, 3, 6};
  sequence.accept(nodes, path);
  // The same text without the rejected guesses.
  KvSequence straight(pool);
  tokens.append_to(straight, 0, kText);
  for (const std::int64_t node : path) tokens.append_to(straight, kText + node, kText + node + 1);
  EXPECT_EQ(sequence.length(), kText + 4);
  const Tokens next(1, 50);
  for (KvSequence* one : {&sequence, &straight}) next.append_to(*one, 0, 1);
  EXPECT_TRUE(same_bits(attend(next.query, sequence, {.mask = causal()}),
                        attend(next.query, straight, {.mask = causal()})));
}

TEST(KvCache, AcceptRefusesWhatIsNoPath) {
  const Tokens tokens(20);
  KvSequence sequence(config());
  tokens.append_to(sequence, 0, 20);
  const auto accept = [&](std::int64_t nodes, const std::vector<std::int64_t>& path) {
    return [&sequence, nodes, path] { sequence.accept(nodes, path); };
  };
  EXPECT_THAT(accept(21, {}), Refuses("num_nodes", "21"));
  const auto refused = [&](std::int64_t nodes, const std::vector<std::int64_t>& path,
                           const Message& text) {
    EXPECT_THAT(accept(nodes, path), ThrowsMessage<InvalidArgument>(text));
  };
  refused(4, {1, 1}, {"path[1]", "1"});
  refused(3, {2, 1}, {"path[1]", "1"});
  refused(4, {0, 4}, {"path[1]", "4"});
  refused(4, {-1}, {"path[0]", "-1"});
  refused(0, {0}, {"path[0]", "0"});
  EXPECT_EQ(sequence.length(), 20);
}

TEST(KvCache, ABoundedSequenceTakesBoundedMemory) {
  const KvBounds bounds{.window = 50, .sinks = 5, .max_append = 7, .rewind = 4};
  const Tokens tokens(1000);
  for (const std::int64_t page_size : {16, 32, 64, 128}) {
    const auto pages = [page_size](std::int64_t positions) {
      return (positions + page_size - 1) / page_size;
    };
    const std::int64_t most = pages(5) + pages(50 + 7 + 4 - 2) + 1;
    KvPool pool(config(page_size, most));
    KvSequence sequence(pool, bounds);
    const auto seen = [](auto, auto, auto q, auto k) { return (k < 5) | (k > q - 50); };
    const auto whole =
        attention(tokens.query, tokens.key, tokens.value, {.mask = causal() & Mask::where(seen)});
    for (std::int64_t at = 0; at < 1000;) {
      const std::int64_t count = std::min<std::int64_t>(1 + at % 7, 1000 - at);
      tokens.append_to(sequence, at, at + count);
      EXPECT_TRUE(same_bits(attend(tokens.queries(at, at + count), sequence, {.mask = causal()}),
                            rows(whole, at, at + count)))
          << at;
      at += count;
      EXPECT_LE(pool.pages_in_use(), most);
      if (at % 11 == 0) {
        sequence.truncate(at - 4);
        tokens.append_to(sequence, at - 4, at);
      }
    }
    EXPECT_EQ(sequence.length(), 1000);
  }
}

TEST(KvCache, ABoundedSequenceWithoutSinksIsASlidingWindow) {
  const Tokens tokens(400);
  KvSequence sequence(config(16), {.window = 40});
  const auto whole =
      attention(tokens.query, tokens.key, tokens.value, {.mask = sliding_window(39, 0)});
  for (std::int64_t at = 0; at < 400; ++at) {
    tokens.append_to(sequence, at, at + 1);
    EXPECT_TRUE(same_bits(attend(tokens.queries(at, at + 1), sequence), rows(whole, at, at + 1)));
  }
  EXPECT_LE(sequence.num_pages(), 4);
}

TEST(KvCache, ABoundedSequenceSaysWhatIsGone) {
  const Tokens tokens(300);
  KvSequence sequence(config(16), {.window = 20, .sinks = 3, .max_append = 4, .rewind = 5});
  EXPECT_THAT([&] { tokens.append_to(sequence, 0, 5); },
              ThrowsMessage<InvalidArgument>(
                  HasSubstr("KvSequence::append: 5 positions are appended, but max_append is 4")));
  for (std::int64_t at = 0; at < 100; at += 4) tokens.append_to(sequence, at, at + 4);
  // Positions 72 to 99 are kept.
  EXPECT_THAT([&] { attend(tokens.queries(0, 10), sequence); },
              ThrowsMessage<InvalidArgument>(
                  HasSubstr("attend: the first query stands at 90 and sees from 71 on, but "
                            "positions 3 to 71 are gone; max_append is 4")));
  EXPECT_NO_THROW(attend(tokens.queries(0, 9), sequence));
  EXPECT_THAT([&] { sequence.truncate(90); },
              ThrowsMessage<InvalidArgument>(
                  HasSubstr("KvSequence::truncate: n is 90, but positions 3 to 71 are gone and a "
                            "query at 90 sees from 71 on; rewind is 5")));
  EXPECT_THAT([&] { sequence.fork(60); }, Refuses("n", "60"));
  EXPECT_EQ(sequence.length(), 100);
  sequence.truncate(91);
  EXPECT_EQ(sequence.length(), 91);
  EXPECT_THAT([&] { sequence.accept(91, std::vector<std::int64_t>{50}); },
              Refuses("path[0]", "50"));
  const KvTensors kept = sequence.dequantised();
  EXPECT_EQ(kept.key(0, 71, 0), 0);
  EXPECT_EQ(kept.key(0, 72, 0), tokens.key(0, 0, 72, 0));
  EXPECT_EQ(kept.key(1, 2, 3), tokens.key(0, 1, 2, 3));
  sequence.truncate(2);  // sinks only
  tokens.append_to(sequence, 2, 6);
  EXPECT_TRUE(same_bits(sequence.dequantised().key,
                        to_tensor(tokens.key.view().select(0, 0).slice(1, 0, 6))));
}

TEST(KvCache, OutOfPagesChangesNothingAndSaysTheNumbers) {
  const Tokens tokens(300);
  KvPool pool(config(16, 5));
  KvSequence first(pool);
  tokens.append_to(first, 0, 40);
  KvSequence second = first.fork(20);
  tokens.append_to(second, 20, 33);  // copies one page and takes another
  EXPECT_EQ(pool.free_pages(), 0);
  const auto before = first.dequantised();
  try {
    tokens.append_to(first, 40, 100);
    ADD_FAILURE() << "there are no pages";
  } catch (const OutOfPages& error) {
    EXPECT_EQ(error.wanted(), 4);
    EXPECT_EQ(error.free(), 0);
    EXPECT_EQ(error.total(), 5);
    EXPECT_STREQ(error.what(), "KvSequence::append: 4 pages are wanted, but 0 of 5 are free");
  }
  EXPECT_EQ(first.length(), 40);
  EXPECT_EQ(pool.free_pages(), 0);
  EXPECT_TRUE(same_bits(first.dequantised().value, before.value));
  tokens.append_to(first, 40, 48);  // fills the rest of its own page
  KvSequence third = second.fork();
  // All three pages to be written are shared.
  EXPECT_THROW(third.accept(33, std::vector<std::int64_t>{1, 20, 32}), OutOfPages);
  EXPECT_EQ(third.length(), 33);
  EXPECT_TRUE(same_bits(third.dequantised().key, second.dequantised().key));
}

TEST(KvCache, HandlesThatAreDeadAreRefused) {
  const Tokens tokens(10);
  std::optional<KvPool> pool(config());
  KvSequence sequence(*pool);
  tokens.append_to(sequence, 0, 5);
  KvSequence moved = std::move(sequence);
  // NOLINTNEXTLINE(bugprone-use-after-move): that is the test
  EXPECT_THAT([&] { tokens.append_to(sequence, 0, 1); },
              ThrowsMessage<InvalidArgument>("KvSequence::append: the sequence was moved from"));
  EXPECT_THAT([&] { (void)sequence.length(); },
              ThrowsMessage<InvalidArgument>("KvSequence::length: the sequence was moved from"));
  KvPool other = std::move(*pool);
  EXPECT_EQ(moved.length(), 5);
  EXPECT_THAT([&] { KvSequence on_moved(*pool); },
              ThrowsMessage<InvalidArgument>("KvSequence: the pool was moved from"));
  { const KvPool ended = std::move(other); }
  EXPECT_THAT([&] { attend(tokens.queries(0, 1), moved); },
              ThrowsMessage<InvalidArgument>("attend: the pool of the sequence is gone"));
  EXPECT_THAT([&] { moved.reset(); }, ThrowsMessage<InvalidArgument>(
                                          "KvSequence::reset: the pool of the sequence is gone"));
  EXPECT_THAT([&] { (void)moved.fork(); }, ThrowsMessage<InvalidArgument>(HasSubstr("is gone")));
  EXPECT_THAT([&] { (void)moved.dequantised(); },
              ThrowsMessage<InvalidArgument>(HasSubstr("is gone")));
}

TEST(KvCache, APoolThatIsReplacedEnds) {
  KvPool pool(config());
  const KvSequence old(pool);
  pool = KvPool(config(16));
  EXPECT_THROW((void)old.length(), InvalidArgument);
  EXPECT_EQ(KvSequence(pool).length(), 0);
}

TEST(KvCache, ConfigurationsThatMeanNothingAreRefused) {
  const auto refused = [](const KvConfig& config, const Message& text) {
    EXPECT_THAT([&] { KvPool pool(config); }, ThrowsMessage<InvalidArgument>(text));
  };
  refused({.num_kv_heads = 0, .head_dim = 4}, {"num_kv_heads", "0"});
  refused({}, {"head_dim", "0"});
  refused({.head_dim = 4, .value_dim = -1}, {"value_dim", "-1"});
  refused({.head_dim = 4, .page_size = 48}, {"page_size", "48"});
  refused({.head_dim = 4, .page_size = 256}, {"page_size", "256"});
  refused({.head_dim = 4, .max_pages = -1}, {"max_pages", "-1"});
  const auto unbounded = [](const KvBounds& bounds, const Message& text) {
    EXPECT_THAT([&] { KvSequence sequence(config(), bounds); },
                ThrowsMessage<InvalidArgument>(text));
  };
  unbounded({.window = 0}, {"window", "0"});
  unbounded({.sinks = 4}, {"sinks", "4"});
  unbounded({.window = 4, .sinks = -1}, {"sinks", "-1"});
  unbounded({.window = 4, .max_append = 0}, {"max_append", "0"});
  unbounded({.window = 4, .rewind = -2}, {"rewind", "-2"});
}

TEST(KvCache, ArgumentsThatDoNotFitAreRefused) {
  const Tokens tokens(10);
  KvPool pool(config());
  KvSequence sequence(pool);
  tokens.append_to(sequence, 0, 10);
  const auto append = [&](const Shape& key, const Shape& value, const Message& text) {
    const Tensor<float> some_key(key);
    const Tensor<float> some_value(value);
    EXPECT_THAT([&] { sequence.append(some_key, some_value); },
                ThrowsMessage<InvalidArgument>(text));
    EXPECT_EQ(sequence.length(), 10);
  };
  append({3, 1, kDim}, {2, 1, kValueDim}, {"key", "[3, 1, 24]"});
  append({1, 3, 1, kDim}, {1, 2, 1, kValueDim}, {"key", "[1, 3, 1, 24]"});
  append({2, 1, kDim}, {2, 2, kValueDim}, {"value", "[2, 2, 10]"});
  append({1, 2, 1, kDim}, {1, 2, 1, kDim}, {"value", "[1, 2, 1, 24]"});
  append({2, 1, kDim}, {2, 1, kDim}, {"value", "[2, 1, 24]"});
  append({2, 2, 1, kDim}, {2, 2, 1, kValueDim}, {"key", "[2, 2, 1, 24]"});
  append({kDim}, {kValueDim}, {"key", "[24]"});

  const auto refuse = [&](const Shape& query, const AttentionOptions& options,
                          const Message& text) {
    const Tensor<float> some(query);
    EXPECT_THAT([&] { attend(some, sequence, options); }, ThrowsMessage<InvalidArgument>(text));
  };
  refuse({1, 4, 11, kDim}, {}, "attend: 11 queries, but the sequence has 10 positions");
  refuse({2, 4, 1, kDim}, {}, {"query", "[2, 4, 1, 24]"});
  refuse({1, 4, 1, 8}, {}, {"query head_dim", "8"});
  refuse({1, 3, 1, kDim}, {}, {"num_heads", "3"});
  refuse({1, 4, 1, kDim}, {.query_offset = 3}, {"query_offset", "3"});
  refuse({1, 4, 1, kDim}, {.query_offset = std::vector<std::int64_t>{0, 7}}, {"query_offset", "7"});
  refuse({1, 4, 1, kDim}, {.mask = documents({0, 5})}, {"last boundary", "5"});
  refuse({1, 4, 1, kDim}, {.mask = key_lengths({5, 6})}, "key_lengths: 2 lengths were given");

  const Tensor<float> packed({2, 4, kDim});
  KvSequence alone(config());
  tokens.append_to(alone, 0, 10);
  const KvSequence* mixed[] = {&sequence, &alone};
  const std::int64_t boundaries[] = {0, 1, 2};
  EXPECT_THAT(
      [&] {
        attend(packed, KvBatch{mixed, boundaries});
      },
      ThrowsMessage<InvalidArgument>("attend: sequences[1] is not of the pool of sequences[0]"));
  const KvSequence* one[] = {&sequence};
  EXPECT_THAT([&] { attend(packed, KvBatch{one, boundaries}); }, Refuses("query", "2"));
  const std::int64_t falling[] = {0, 3, 2};
  EXPECT_THAT(
      [&] {
        attend(packed, KvBatch{mixed, falling});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("fall from 3 to 2")));
  const KvSequence* null[] = {&sequence, nullptr};
  EXPECT_THAT(
      [&] {
        attend(packed, KvBatch{null, boundaries});
      },
      ThrowsMessage<InvalidArgument>("attend: sequences[1] is null"));
}

TEST(KvCache, MasksThatNameASequenceSpeakOfEntryZero) {
  const Tokens tokens(12);
  KvSequence sequence(config());
  tokens.append_to(sequence, 0, 12);
  const AttentionOptions options{.mask = key_lengths({7}) & documents({0, 4, 12})};
  EXPECT_TRUE(same_bits(attend(tokens.queries(0, 12), sequence, options),
                        attention(tokens.query, tokens.key, tokens.value, options)));
}

TEST(KvCache, NothingIsAlwaysPossible) {
  const Tokens tokens(3);
  KvPool pool(config());
  KvSequence sequence(pool);
  tokens.append_to(sequence, 0, 0);
  EXPECT_EQ(attend(tokens.queries(0, 0), sequence).shape(), (Shape{1, kHeads, 0, kValueDim}));
  const Tensor<float> none({0, kHeads, kDim});
  const std::int64_t empty[] = {0};
  EXPECT_EQ(attend(none, KvBatch{{}, empty}).num_elements(), 0);
  tokens.append_to(sequence, 0, 3);
  sequence.accept(0, {});
  EXPECT_EQ(sequence.length(), 3);
}

TEST(KvStorageNames, AreReadBack) {
  for (const char* name : {"float32", "float16", "bfloat16", "int8", "int4"}) {
    EXPECT_EQ(to_string(parse_kv_storage(name)), name);
  }
  EXPECT_THAT(
      [] { parse_kv_storage("int2"); },
      ThrowsMessage<InvalidArgument>("parse_kv_storage: name is 'int2', expected 'float32', "
                                     "'float16', 'bfloat16', 'int8' or 'int4'"));
  EXPECT_THAT([] { parse_kv_storage("Int8\x1b", "KvPool: key_storage"); },
              Refuses("key_storage", "'Int8?'"));
  EXPECT_THROW(parse_kv_storage(""), InvalidArgument);
}

}  // namespace
}  // namespace heed
