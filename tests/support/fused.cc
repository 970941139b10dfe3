#include "support/fused.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "attention/fused/forward.h"
#include "heed/parallel.h"
#include "heed/reference.h"
#include "support/tensors.h"

namespace heed::testing_support {

namespace {

Tensor<double> widened(FloatView view) {
  Tensor<double> result(view.shape());
  double* out = result.data();
  for_each_element(view, [&out](float element) { *out++ = element; });
  return result;
}

// The root of the mean square of found − exact; infinite where exactly one of them is not finite.
double rms_error(const Tensor<float>& found, const Tensor<double>& exact) {
  double sum = 0;
  for (std::size_t i = 0; i < found.elements().size(); ++i) {
    const double a = found.elements()[i];
    const double b = exact.elements()[i];
    if (a == b) continue;
    sum += std::isfinite(a) && std::isfinite(b) ? (a - b) * (a - b)
                                                : std::numeric_limits<double>::infinity();
  }
  return std::sqrt(sum / static_cast<double>(std::max<std::size_t>(found.elements().size(), 1)));
}

double largest_magnitude(const Tensor<double>& exact) {
  double largest = 1;
  for (const double x : exact.elements()) {
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  }
  return largest;
}

std::string inaccuracy(const char* name, const Tensor<float>& found, const Tensor<float>& plain,
                       const Tensor<double>& exact) {
  const double bound =
      std::max(2 * rms_error(plain, exact), 2 * 0x1p-24 * largest_magnitude(exact));
  const double error = rms_error(found, exact);
  if (error <= bound) return "";
  std::ostringstream text;
  text << name << " has an error of " << error << ", but only " << bound << " is allowed\n";
  return text.str();
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
  AttentionOptions64 exact_options;
  exact_options.mask = options.mask;
  exact_options.score_mod = options.score_mod;
  exact_options.softcap = options.softcap;
  exact_options.dropout = options.dropout;
  exact_options.query_offset = options.query_offset;
  if (options.scale) exact_options.scale = *options.scale;
  Tensor<double> bias;
  Tensor<double> sinks;
  if (options.bias) exact_options.bias = bias = widened(*options.bias);
  if (options.sinks) exact_options.sinks = sinks = widened(*options.sinks);
  auto plain = reference::attention(in.query, in.key, in.value, options);
  auto exact =
      reference::attention(widened(in.query), widened(in.key), widened(in.value), exact_options);
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
