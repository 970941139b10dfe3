// The same question in double, and the rule by which answers in float are judged.
#pragma once

#include <string>

#include "heed/attention.h"
#include "heed/core/tensor.h"

namespace heed::testing_support {

Tensor<double> exactly(FloatView view);

// Options in double; what they refer to lives here.
class ExactOptions {
 public:
  explicit ExactOptions(const AttentionOptions& options);
  ExactOptions(const ExactOptions&) = delete;
  ExactOptions& operator=(const ExactOptions&) = delete;

  const AttentionOptions64& operator*() const { return options_; }

 private:
  AttentionOptions64 options_;
  Tensor<double> alibi_slopes_;
  Tensor<double> bias_;
  Tensor<double> sinks_;
  Tensor<double> relative_bias_;
  Tensor<double> relative_key_;
  Tensor<double> relative_value_;
};

// The largest magnitude of a finite number, or 0.
double largest_magnitude(const Tensor<double>& tensor);

// The root of the mean square of found − exact; infinite where exactly one of two numbers is
// finite.
double root_mean_square_error(const Tensor<float>& found, const Tensor<double>& exact);

// What is said of a tensor of numbers in float: how wrong they may be.
struct Judgement {
  // found − exact, or that divided by exact where this exceeds 2⁻⁶⁰.
  enum class Error { kAbsolute, kRelative } error = Error::kAbsolute;
  // An error that is always allowed: the plain computation may be lucky.
  double always_allowed = 0;

  // Empty when the root of the mean square error of `found` is at most twice that of `plain`;
  // otherwise a text with both. Where exactly one of two numbers is finite the error is infinite.
  std::string operator()(const std::string& name, const Tensor<float>& found,
                         const Tensor<float>& plain, const Tensor<double>& exact) const;
};

}  // namespace heed::testing_support
