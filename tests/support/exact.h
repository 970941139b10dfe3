// The computation in double, and the rule by which float results are judged.
#pragma once

#include <deque>
#include <string>

#include "heed/attention.h"
#include "heed/core/tensor.h"

namespace heed::testing_support {

Tensor<double> exactly(FloatView view);

// Options in double, with their memory.
class ExactOptions {
 public:
  explicit ExactOptions(const AttentionOptions& options);
  ExactOptions(const ExactOptions&) = delete;
  ExactOptions& operator=(const ExactOptions&) = delete;

  const AttentionOptions64& operator*() const { return options_; }

 private:
  AttentionOptions64 options_;
  std::deque<Tensor<double>> tensors_;
};

// Returns the largest magnitude of a finite number, or 0.
double largest_magnitude(const Tensor<double>& tensor);

// Returns the root mean square of found − exact; infinite where exactly one of two numbers is
// finite.
double root_mean_square_error(const Tensor<float>& found, const Tensor<double>& exact);

// The allowed error of a float tensor.
struct Judgement {
  // The error is found − exact, or that divided by exact where exact exceeds 2⁻⁶⁰.
  enum class Error { kAbsolute, kRelative } error = Error::kAbsolute;
  // An error that is always allowed, because the plain computation may be lucky.
  double always_allowed = 0;

  // Returns an empty text if the root mean square error of `found` is at most twice that of
  // `plain`; otherwise a text with both errors. Where exactly one of two numbers is finite the
  // error is infinite.
  std::string operator()(const std::string& name, const Tensor<float>& found,
                         const Tensor<float>& plain, const Tensor<double>& exact) const;
};

}  // namespace heed::testing_support
