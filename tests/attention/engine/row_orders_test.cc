// Blocks with two orders of rows: each tile uses the order that suits it, and no bit changes.
#include "attention/engine/row_orders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "attention/engine/seen_tile.h"
#include "heed/attention/backward.h"
#include "heed/attention/packed.h"
#include "heed/attention/plan.h"
#include "heed/core/convert.h"
#include "heed/core/parallel.h"
#include "support/gradients.h"
#include "support/tensors.h"

namespace heed { namespace {

using engine::Pass;
using testing_support::grad_out_for;
using testing_support::gradients_from;
using testing_support::Inputs;
using testing_support::run;
using testing_support::run_on_threads;
using testing_support::same_bits;
using testing_support::Sizes;
using testing_support::TargetTest;

// A union of masks, one of which shows keys in steps, for some shape.
struct UnionCase {
  Sizes sizes;
  std::vector<std::int64_t> offsets;
  std::int64_t step = 2;
  float magnitude = 1;  // of queries; offsets change where it is large
  Mask mask;

  ScoreShape shape() const {
    return {sizes.batch, sizes.num_heads, sizes.q_len, sizes.kv_len, offsets};
  }
  AttentionOptions options() const { return {.mask = mask, .query_offset = offsets}; }
  AttentionOptions booleans(const Tensor<bool>& allowed) const {
    return {.mask = Mask::allow(allowed), .query_offset = offsets};
  }
};

std::ostream& operator<<(std::ostream& out, const UnionCase& drawn) {
  const Sizes& s = drawn.sizes;
  out << drawn.mask.description() << ", batch " << s.batch << ", heads " << s.num_heads << " of "
      << s.num_kv_heads << ", " << s.q_len << " x " << s.kv_len << ", dims " << s.head_dim << ", "
      << s.value_dim << ", magnitude " << drawn.magnitude << ", offsets";
  for (const std::int64_t offset : drawn.offsets) out << ' ' << offset;
  return out;
}

std::int64_t number(std::int64_t least, std::int64_t most) {
  return *rc::gen::inRange(least, most + 1);
}

template <class T>
T one_of(const std::vector<T>& choices) {
  return choices[*rc::gen::inRange<std::size_t>(0, choices.size())];
}

Mask far_keys(std::int64_t step, const Alignment& at) {
  switch (number(0, 4)) {
    case 0:
      return strided(step, at);
    case 1:
      return dilated(number(1, 60), step, at);
    case 2:
      return strided(step, at) & sliding_window(number(0, 900), number(0, 200), at);
    case 3:
      return strided(step, at) & columns(number(1, 3));
    default:
      return causal(at) & strided(step, at);
  }
}

// Adds other visible keys: near keys, and sometimes the first ones or random ones.
Mask with_others(Mask mask, const Alignment& at) {
  mask = sliding_window(number(0, 150), number(0, 80), at) | mask;
  switch (number(0, 5)) {
    case 0:
      return global_tokens(number(0, 20), at) | mask;
    case 1:
      return mask | strided(number(2, 9), at);
    case 2:
      return mask | block_window(1, 0, number(1, 70), at);
    case 3:
      return mask | (causal(at) & random_blocks({.count = 1, .block = 30, .seed = 3}, at));
    default:
      return mask;
  }
}

Mask within(const UnionCase& drawn, const Mask& mask, const Alignment& at) {
  switch (number(0, 5)) {
    case 0:
      return mask & causal(at);
    case 1: {
      std::vector<std::int64_t> lengths;
      for (std::int64_t b = 0; b < drawn.sizes.batch; ++b) {
        lengths.push_back(number(0, drawn.sizes.kv_len));
      }
      return key_lengths(lengths) & mask;
    }
    case 2:
      return mask & Mask::where([](int, int h, int q, int k) { return (q + 3 * k + h) % 11 != 0; });
    default:
      return mask;
  }
}

UnionCase draw_union() {
  UnionCase drawn;
  const std::int64_t group = one_of<std::int64_t>({1, 1, 2, 3, 5});
  drawn.sizes = {.batch = number(1, 2),
                 .num_kv_heads = number(1, 2),
                 .q_len = one_of<std::int64_t>({number(14, 300), number(300, 600)}),
                 .kv_len = one_of<std::int64_t>({number(1, 600), 1024, number(1000, 1500)}),
                 .head_dim = one_of<std::int64_t>({1, 4, 7, 16}),
                 .value_dim = one_of<std::int64_t>({1, 3, 8})};
  drawn.sizes.num_heads = drawn.sizes.num_kv_heads * group;
  drawn.sizes.q_len /= group * drawn.sizes.batch;
  const std::int64_t last = drawn.sizes.kv_len - drawn.sizes.q_len;
  for (std::int64_t b = 0; b < drawn.sizes.batch; ++b) {
    drawn.offsets.push_back(one_of<std::int64_t>({0, last, number(-40, 900)}));
  }
  drawn.magnitude = one_of<float>({1, 1, 60});
  drawn.step = one_of<std::int64_t>({2, 3, 5, 8, 16, 40, 64, 150});
  const Alignment at = one_of<Alignment>({Alignment::top_left(), Alignment::offset(number(0, 99))});
  drawn.mask = within(drawn, with_others(far_keys(drawn.step, at), at), at);
  return drawn;
}

class RowOrdersOn : public TargetTest {};
HEED_RUN_ON_EVERY_TARGET(RowOrdersOn);

TEST_P(RowOrdersOn, HaveTheBitsOfBooleans) {
  EXPECT_TRUE(rc::check("no bit of a union depends on the order of rows", [] {
    const UnionCase drawn = *rc::gen::exec(draw_union);
    RC_TAG(drawn.step);
    const Inputs in(drawn.sizes, drawn.magnitude);
    const Tensor<bool> allowed = materialize_allow(drawn.mask, drawn.shape());
    const auto expected = run(table(), in, drawn.booleans(allowed));
    const auto found = run(table(), in, drawn.options());
    RC_ASSERT(same_bits(found.out, expected.out) && same_bits(found.lse, expected.lse));
    const auto shared = run_on_threads(7, table(), in, drawn.options());
    RC_ASSERT(same_bits(shared.out, expected.out) && same_bits(shared.lse, expected.lse));
    const auto grad_out = grad_out_for(in);
    const auto gradients = gradients_from(expected, table(), grad_out, in, drawn.booleans(allowed));
    for (const int threads : {1, 2}) {
      RC_ASSERT(same_bits(gradients_from(found, table(), grad_out, in, drawn.options(), threads),
                          gradients));
    }
  }));
}

Request<float> request_of(const Mask& mask, std::int64_t length, AttentionOptions options = {}) {
  options.mask = mask;
  return check_request("test",
                       {.num_heads = 2,
                        .num_kv_heads = 2,
                        .q_len = length,
                        .kv_len = length,
                        .head_dim = 64,
                        .value_dim = 64},
                       options);
}

Mask window_or_stride() { return sliding_window(128, 0) | (causal() & strided(8)); }

TEST_P(RowOrdersOn, AreTwoWhereAStrideIsOneOfSeveral) {
  const auto step_of = [](const Mask& mask, Pass pass, const AttentionOptions& options = {}) {
    return engine::make_schedule(table(), request_of(mask, 1000, options), pass, 1).tile_step;
  };
  for (const Pass pass : {Pass::kForward, Pass::kBackward}) {
    EXPECT_EQ(step_of(window_or_stride(), pass), 8);
    EXPECT_EQ(step_of((strided(5) | global_tokens(3)) & causal(), pass), 5);
    EXPECT_EQ(step_of(sliding_window(4, 4) | dilated(9, 3), pass), 3);
    // All tiles take rows at a step, or all in order.
    EXPECT_EQ(step_of(causal() & strided(8), pass), 1);
    EXPECT_EQ(step_of(sliding_window(9, 0) | global_tokens(3), pass), 1);
    EXPECT_EQ(step_of(sliding_window(9, 0) | strided(1000), pass), 1);
    EXPECT_EQ(step_of(window_or_stride(), pass, {.softcap = 5.0F}), 1);
    EXPECT_EQ(step_of(window_or_stride(), pass, {.dropout = {.probability = 0.5F}}), 1);
  }
  EXPECT_EQ(step_of(window_or_stride(), Pass::kWeights), 1);
  // Sums of sinks are over rows in their order.
  const Tensor<float> sinks({2}, {1.0F, 2.0F});
  EXPECT_EQ(step_of(window_or_stride(), Pass::kForward, {.sinks = sinks}), 8);
  EXPECT_EQ(step_of(window_or_stride(), Pass::kBackward, {.sinks = sinks}), 1);
}

TEST(RowOrders, AreInThePlan) {
  const AttentionShapes shapes{.q_len = 1000, .kv_len = 1000, .head_dim = 64, .value_dim = 64};
  const AttentionPlan planned = plan(shapes, {.mask = window_or_stride()});
  if (planned.target() == "reference") GTEST_SKIP() << "the reference has no panels";
  const std::string apart = "of neighbours or of queries 8 apart";
  EXPECT_THAT(planned.to_string(), testing::HasSubstr(apart));
  const AttentionPlan of_stride = plan(shapes, {.mask = causal() & strided(8)});
  EXPECT_THAT(of_stride.to_string(), testing::Not(testing::HasSubstr(apart)));
}

// Returns the products of a query and a key that a panel computes for a tile.
std::int64_t products(const Request<float>& request, const engine::RowBlock& panel, RowRange keys) {
  std::vector<std::int32_t> heads;
  std::vector<std::int32_t> positions;
  for (std::int64_t row = panel.rows.begin; row < panel.rows.end; ++row) {
    heads.push_back(static_cast<std::int32_t>(panel.kv_head));
    positions.push_back(static_cast<std::int32_t>(panel.first_query + row * panel.query_step));
  }
  const auto count = static_cast<std::int32_t>(heads.size());
  detail::RowBits seen;
  request.mask.see({0, count, heads.data(), positions.data()}, keys, seen.data());
  detail::KeyBits any;
  for (std::int32_t r = 0; r < count; ++r) any |= seen[static_cast<std::size_t>(r)];
  return any.is_empty() ? 0 : engine::steps_of(any).count * count;
}

// Returns the products of the first head.
std::int64_t products(const Request<float>& request, const engine::Schedule<float>& schedule) {
  std::int64_t count = 0;
  for (std::int64_t first = 0; first < request.shape.q_len; first += schedule.block_rows()) {
    engine::RowBlock block;
    block.rows = {first, std::min(first + schedule.block_rows(), request.shape.q_len)};
    const engine::RowOrders<float> orders(schedule, request, block);
    for (std::int64_t key = 0; key < request.shape.kv_len; key += kernels::kTileKeys) {
      const RowRange keys{key, std::min(key + kernels::kTileKeys, request.shape.kv_len)};
      const auto add = [&](const engine::RowBlock& panel) {
        count += products(request, panel, keys);
      };
      if (schedule.has_two_orders() && orders.suits_steps(keys)) {
        orders.for_each_panel(add);
        continue;
      }
      engine::RowBlock panel = block;
      for (std::int64_t row = first; row < block.rows.end; row = panel.rows.end) {
        panel.rows = {row, std::min<std::int64_t>(row + schedule.panel_rows, block.rows.end)};
        add(panel);
      }
    }
  }
  return count;
}

// In tiles that only a stride shows, the keys between its steps are skipped, although neighbouring
// tiles need others.
TEST_P(RowOrdersOn, CostFollowsWhatIsVisible) {
  for (const Pass pass : {Pass::kForward, Pass::kBackward}) {
    const auto share = [&](const Mask& mask) {
      const auto request = request_of(mask, 4096);
      const auto all = request_of(causal(), 4096);
      return static_cast<double>(
                 products(request, engine::make_schedule(table(), request, pass, 1))) /
             static_cast<double>(products(all, engine::make_schedule(table(), all, pass, 1)));
    };
    EXPECT_LT(share(window_or_stride()), 0.30);  // 0.18 of its pairs are visible
    EXPECT_LT(share(sparse_transformer(16)), 0.25);
    EXPECT_LT(share((sliding_window(20, 20) | strided(8)) & causal()), 0.27);
  }
}

template <class T>
void expect_bits_of_booleans(const Mask& mask) {
  const Inputs in({.num_heads = 4, .num_kv_heads = 2, .q_len = 210, .kv_len = 1300, .head_dim = 8});
  const auto query = converted<T>(in.query.view());
  const auto key = converted<T>(in.key.view());
  const auto value = converted<T>(in.value.view());
  const Tensor<float> numbers = grad_out_for(in);
  const auto grad_out = converted<T>(numbers.view());
  const Tensor<bool> allowed = materialize_allow(mask, {1, 4, 210, 1300});
  BasicAttentionOptions<typename AttentionBuffers<T>::Lse> options{.mask = mask};
  const auto found = attention_with_lse(query, key, value, options);
  const auto found_gradients = attention_backward(grad_out, query, key, value, found, options);
  options.mask = Mask::allow(allowed);
  const auto expected = attention_with_lse(query, key, value, options);
  const auto gradients = attention_backward(grad_out, query, key, value, expected, options);
  EXPECT_TRUE(same_bits(found.out, expected.out)) << mask.description();
  EXPECT_TRUE(same_bits(found.lse, expected.lse)) << mask.description();
  EXPECT_TRUE(same_bits(found_gradients.query, gradients.query)) << mask.description();
  EXPECT_TRUE(same_bits(found_gradients.key, gradients.key)) << mask.description();
  EXPECT_TRUE(same_bits(found_gradients.value, gradients.value)) << mask.description();
}

TEST(RowOrders, HaveTheBitsOfBooleansInEveryType) {
  const Alignment end = Alignment::bottom_right();
  for (const Mask& mask :
       {sliding_window(50, 20, end) | (causal(end) & strided(8, end)),
        sliding_window(9, 9, end) | dilated(100, 3, end) | global_tokens(5, end)}) {
    expect_bits_of_booleans<float>(mask);
    expect_bits_of_booleans<double>(mask);
    expect_bits_of_booleans<Float16>(mask);
    expect_bits_of_booleans<BFloat16>(mask);
  }
}

TEST(RowOrders, HaveTheBitsOfAFunctionInPackedSequences) {
  const std::vector<std::int64_t> ends{0, 130, 131, 700, 1000};
  const auto numbers = [](std::int64_t heads, std::uint32_t seed) {
    return testing_support::normal<float>({1000, heads, 8}, seed);
  };
  const auto query = numbers(4, 1), key = numbers(2, 2), value = numbers(2, 3),
             grad_out = numbers(4, 4);
  AttentionOptions steps{.mask = (sliding_window(30, 0) | strided(7)) & causal()};
  AttentionOptions function{.mask = Mask::where([](int, int, int q, int k) {
                              return k <= q && (q - k <= 30 || (q - k) % 7 == 0);
                            })};
  for (const int threads : {1, 3}) {
    set_num_threads(threads);
    const auto found = attention_packed_with_lse(query, key, value, {ends, ends}, steps);
    const auto expected = attention_packed_with_lse(query, key, value, {ends, ends}, function);
    EXPECT_TRUE(same_bits(found.out, expected.out) && same_bits(found.lse, expected.lse));
    EXPECT_TRUE(same_bits(
        attention_packed_backward(grad_out, query, key, value, {ends, ends}, found, steps),
        attention_packed_backward(grad_out, query, key, value, {ends, ends}, expected, function)));
  }
  set_num_threads(0);
}

}  // namespace
}  // namespace heed
