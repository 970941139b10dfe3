#include "support/fused.h"

#include <algorithm>
#include <utility>

#include "attention/fused/forward.h"
#include "heed/parallel.h"
#include "heed/reference.h"
#include "support/exact.h"
#include "support/tensors.h"

namespace heed::testing_support {

namespace {

std::string inaccuracy(const char* name, const Tensor<float>& found, const Tensor<float>& plain,
                       const Tensor<double>& exact) {
  const Judgement judge{.always_allowed = 2 * 0x1p-24 * std::max(1.0, largest_magnitude(exact))};
  return judge(name, found, plain, exact);
}

}  // namespace

Inputs::Inputs(const Sizes& sizes, float magnitude)
    : query(normal<float>({sizes.batch, sizes.num_heads, sizes.q_len, sizes.head_dim}, 1)),
      key(normal<float>({sizes.batch, sizes.num_kv_heads, sizes.kv_len, sizes.head_dim}, 2)),
      value(normal<float>({sizes.batch, sizes.num_kv_heads, sizes.kv_len, sizes.value_dim}, 3)) {
  for (float& element : query.elements()) element *= magnitude;
}

AttentionOutput<float> run(const kernels::KernelTable& table, const InputViews& in,
                           const AttentionOptions& options) {
  const AttentionShapes shapes = check_shapes("attention", in.query, in.key, in.value);
  const auto terms = check_terms("attention", shapes, options);
  const Shape lse{in.query.extent(0), in.query.extent(1), in.query.extent(2)};
  AttentionOutput<float> result{Tensor<float>({lse[0], lse[1], lse[2], in.value.extent(3)}),
                                Tensor<float>(lse)};
  const fused::Job job{
      &terms,     rows_of(in.query), rows_of(in.key), rows_of(in.value), rows_of(result.out.view()),
      result.lse, {0, shapes.batch}};
  fused::forward({&job, 1}, fused::make_schedule(table, terms, shapes, num_threads()));
  return result;
}

Expected expected_of(const InputViews& in, const AttentionOptions& options) {
  const ExactOptions exact_options(options);
  auto plain = reference::attention(in.query, in.key, in.value, options);
  auto exact =
      reference::attention(exactly(in.query), exactly(in.key), exactly(in.value), *exact_options);
  return {{std::move(plain.out), std::move(plain.lse)},
          {std::move(exact.out), std::move(exact.lse)}};
}

std::string inaccuracy(const AttentionOutput<float>& found, const Expected& expected) {
  return inaccuracy("out", found.out, expected.plain.out, expected.exact.out) +
         inaccuracy("lse", found.lse, expected.plain.lse, expected.exact.lse);
}

void expect_accurate(const kernels::KernelTable& table, const InputViews& in,
                     const AttentionOptions& options, const std::string& what) {
  EXPECT_EQ(inaccuracy(run(table, in, options), expected_of(in, options)), "") << what;
}

}  // namespace heed::testing_support
