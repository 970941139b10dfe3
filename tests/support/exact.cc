#include "support/exact.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <sstream>

#include "heed/attention/backward.h"

namespace heed::testing_support {

namespace {

double root_mean_square(const Tensor<float>& found, const Tensor<double>& exact,
                        Judgement::Error kind) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (found.shape() != exact.shape()) return kInfinity;
  double sum = 0;
  for (std::size_t i = 0; i < found.elements().size(); ++i) {
    const double a = found.elements()[i];
    const double b = exact.elements()[i];
    if (a == b) continue;
    double error = std::isfinite(a) && std::isfinite(b) ? a - b : kInfinity;
    if (kind == Judgement::Error::kRelative) error = std::abs(b) > 0x1p-60 ? error / b : 0;
    sum += error * error;
  }
  return std::sqrt(sum / static_cast<double>(std::max<std::size_t>(found.elements().size(), 1)));
}

}  // namespace

Tensor<double> exactly(FloatView view) {
  Tensor<double> result(view.shape());
  double* out = result.data();
  for_each_element(view, [&out](float element) { *out++ = element; });
  return result;
}

ExactOptions::ExactOptions(const AttentionOptions& options) {
  // Tensors are rows of kLearnable. Every test that draws an option fails if it is missing here.
  options_.mask = options.mask;
  options_.score_mod = options.score_mod;
  if (options.scale) options_.scale = *options.scale;
  options_.softcap = options.softcap;
  options_.dropout = options.dropout;
  options_.query_offset = options.query_offset;
  if (options.relative_bias) options_.relative_bias = {{}, options.relative_bias->buckets};
  if (options.relative_vectors) {
    options_.relative_vectors = {.buckets = options.relative_vectors->buckets};
  }
  for (std::size_t i = 0; i < kLearnable<float>.size(); ++i) {
    const auto view = kLearnable<float>[i].get(options);
    if (view) kLearnable<double>[i].set(options_, tensors_.emplace_back(exactly(*view)));
  }
}

double root_mean_square_error(const Tensor<float>& found, const Tensor<double>& exact) {
  return root_mean_square(found, exact, Judgement::Error::kAbsolute);
}

double largest_magnitude(const Tensor<double>& tensor) {
  double largest = 0;
  for (const double x : tensor.elements()) {
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  }
  return largest;
}

std::string Judgement::operator()(const std::string& name, const Tensor<float>& found,
                                  const Tensor<float>& plain, const Tensor<double>& exact) const {
  const double bound = std::max(2 * root_mean_square(plain, exact, error), always_allowed);
  const double is = root_mean_square(found, exact, error);
  if (is <= bound) return "";
  std::ostringstream text;
  text << name << " has " << (error == Error::kAbsolute ? "an" : "a relative") << " error of " << is
       << ", but only " << bound << " is allowed\n";
  return text.str();
}

}  // namespace heed::testing_support
