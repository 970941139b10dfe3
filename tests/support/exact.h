// The same question in double, and the rule by which answers in float are judged.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <string>

#include "heed/attention.h"
#include "heed/tensor.h"

namespace heed::testing_support {

template <class T>
Tensor<double> exactly(TensorView<const T> view) {
  Tensor<double> result(view.shape());
  double* out = result.data();
  for_each_element(view, [&out](T element) { *out++ = static_cast<double>(element); });
  return result;
}

// Options in double; what they refer to lives here.
class ExactOptions {
 public:
  explicit ExactOptions(const AttentionOptions& options) {
    options_.mask = options.mask;
    options_.score_mod = options.score_mod;
    options_.softcap = options.softcap;
    options_.dropout = options.dropout;
    options_.query_offset = options.query_offset;
    if (options.scale) options_.scale = *options.scale;
    if (options.bias) options_.bias = bias_ = exactly(*options.bias);
    if (options.sinks) options_.sinks = sinks_ = exactly(*options.sinks);
  }
  ExactOptions(const ExactOptions&) = delete;
  ExactOptions& operator=(const ExactOptions&) = delete;

  const AttentionOptions64& operator*() const { return options_; }

 private:
  AttentionOptions64 options_;
  Tensor<double> bias_;
  Tensor<double> sinks_;
};

enum class Error { kAbsolute, kRelative };

// The root of the mean square of found − exact, or of (found − exact) / exact over what exceeds
// 2⁻⁶⁰; infinite where exactly one of two numbers is not finite, or the shapes differ.
inline double root_mean_square(const Tensor<float>& found, const Tensor<double>& exact,
                               Error kind) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (found.shape() != exact.shape()) return kInfinity;
  double sum = 0;
  for (std::size_t i = 0; i < found.elements().size(); ++i) {
    const double a = found.elements()[i];
    const double b = exact.elements()[i];
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    double error = std::isfinite(a) && std::isfinite(b) ? a - b : kInfinity;
    if (kind == Error::kRelative) error = std::abs(b) > 0x1p-60 ? error / b : 0;
    sum += error * error;
  }
  return std::sqrt(sum / static_cast<double>(std::max<std::size_t>(found.elements().size(), 1)));
}

namespace detail {

inline std::string complaint(const std::string& name, double error, double bound) {
  std::ostringstream text;
  text << name << ": an error of " << error << ", but only " << bound << " is allowed\n";
  return text.str();
}

}  // namespace detail

// Empty when the error is at most twice that of the plain float computation, which may be lucky: 2
// ulp of the largest number, the error of the exponential, are always allowed. Otherwise both.
inline std::string inaccuracy(const std::string& name, const Tensor<float>& found,
                              const Tensor<float>& plain, const Tensor<double>& exact) {
  double largest = 0;
  for (const double x : exact.elements()) {
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  }
  const double error = root_mean_square(found, exact, Error::kAbsolute);
  const double bound =
      std::max(2 * root_mean_square(plain, exact, Error::kAbsolute), 4 * 0x1p-24 * largest);
  return error <= bound ? "" : detail::complaint(name + " (absolute)", error, bound);
}

// The same of errors relative to each number, however small. A number's exponent is rounded too,
// three times where there is no fused multiply-add.
inline std::string relative_inaccuracy(const std::string& name, const Tensor<float>& found,
                                       const Tensor<float>& plain, const Tensor<double>& exact) {
  const double error = root_mean_square(found, exact, Error::kRelative);
  const double bound = std::max(2 * root_mean_square(plain, exact, Error::kRelative), 8 * 0x1p-24);
  return error <= bound ? "" : detail::complaint(name + " (relative)", error, bound);
}

}  // namespace heed::testing_support
