#include "bench/divided_pass.h"

#include <fmt/format.h>

#include "heed/core/error.h"
#include "heed/core/random.h"
#include "heed/distributed/attention.h"
#include "heed/distributed/plan.h"
#include "mask_argument.h"
#include "verbs.h"

namespace heed::cli {

namespace {

PassOperands draw_pass(const DividedCase& one, std::int64_t length, std::uint64_t seed) {
  const AttentionShapes& shapes = one.shapes;
  TorchGenerator random(seed);
  PassOperands in;
  in.is_backward = one.is_backward;
  in.divided_by = one.divided_by;
  in.query = random.randn({1, shapes.num_heads, length, shapes.head_dim});
  in.key = random.randn({1, shapes.num_kv_heads, length, shapes.head_dim});
  in.value = random.randn(in.key.shape());
  if (one.is_backward) in.grad_out = random.randn(in.query.shape());
  return in;
}

}  // namespace

distributed::DividedBy divided_by(const std::string& name) {
  using distributed::DividedBy;
  if (name == to_string(DividedBy::kTokens)) return DividedBy::kTokens;
  if (name == to_string(DividedBy::kHeads)) return DividedBy::kHeads;
  return DividedBy::kAutomatic;
}

void check_division(const std::vector<DividedCase>& cases, const std::vector<std::int64_t>& sizes) {
  for (const DividedCase& one : cases) {
    for (const std::int64_t size : sizes) {
      try {
        distributed::plan(one.shapes, static_cast<int>(size), one.options(), one.divided_by);
      } catch (const InvalidArgument& error) {
        throw UsageError(
            fmt::format("--seq, --heads, --kv-heads, --mask or --divide: {}", error.what()));
      }
    }
  }
}

AttentionOptions DividedCase::options() const { return {.mask = parse_mask("--mask", mask)}; }

PassOperands PassOperands::whole(const DividedCase& one) {
  PassOperands in = draw_pass(one, one.shapes.q_len, 0);
  if (one.is_backward) in.forward = attention_with_lse(in.query, in.key, in.value, one.options());
  return in;
}

PassOperands PassOperands::own(Communicator& ranks, const DividedCase& one) {
  PassOperands in;
  run_on_all(ranks, [&] {
    const distributed::TokenDivision division(one.shapes.q_len, ranks.size());
    in =
        draw_pass(one, division.num_tokens(ranks.rank()), static_cast<std::uint64_t>(ranks.rank()));
  });
  if (one.is_backward) {
    in.forward = distributed::attention_with_lse({ranks, one.divided_by}, in.query, in.key,
                                                 in.value, one.options());
  }
  return in;
}

PassOperands PassOperands::part(const Communicator& ranks) const {
  const auto of = [&](const Tensor<float>& tensor) {
    return distributed::own_tokens(ranks, FloatView(tensor));
  };
  PassOperands in{is_backward, divided_by, of(query), of(key), of(value), {}, {}};
  if (!is_backward) return in;
  in.grad_out = of(grad_out);
  in.forward = {of(forward.out), of(forward.lse), of(forward.lse_low)};
  return in;
}

void PassOperands::compute(const AttentionOptions& options) const {
  if (is_backward) {
    attention_backward(grad_out, query, key, value, forward, options);
  } else {
    attention_with_lse(query, key, value, options);
  }
}

void PassOperands::compute(Communicator& ranks, const AttentionOptions& options) const {
  if (is_backward) {
    distributed::attention_backward({ranks, divided_by}, grad_out, query, key, value, forward,
                                    options);
  } else {
    distributed::attention_with_lse({ranks, divided_by}, query, key, value, options);
  }
}

}  // namespace heed::cli
