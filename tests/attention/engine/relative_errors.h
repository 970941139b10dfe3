// The errors of a tensor over many problems.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "support/exact.h"

namespace heed::testing_support {

// The errors of one tensor over all problems, relative to what was added up, and at least the error
// of rounding the exact result.
class RelativeErrors {
 public:
  // Adds an error of problem `number`.
  void add(int number, const Tensor<float>& found, const Tensor<double>& exact,
           const Tensor<double>& magnitudes) {
    const bool is_finite = std::all_of(exact.elements().begin(), exact.elements().end(),
                                       [](double x) { return std::isfinite(x); });
    if (exact.empty() || !is_finite) return;
    const double size = root_mean_square_error(Tensor<float>(exact.shape()), magnitudes);
    if (size == 0) return;
    Tensor<float> rounded(exact.shape());
    std::copy(exact.elements().begin(), exact.elements().end(), rounded.data());
    const double error =
        std::max(root_mean_square_error(found, exact), root_mean_square_error(rounded, exact));
    errors_.emplace_back(error / size, number);
  }
  // Sorts the errors; to be called before the functions below.
  void finish() { std::sort(errors_.begin(), errors_.end()); }
  double quantile(double share) const {
    return errors_[static_cast<std::size_t>(share * static_cast<double>(errors_.size() - 1))].first;
  }
  // The problems with the three largest errors, the largest first.
  std::vector<int> worst() const {
    std::vector<int> problems;
    for (auto error = errors_.rbegin(); error != errors_.rend() && problems.size() < 3; ++error) {
      problems.push_back(error->second);
    }
    return problems;
  }
  std::size_t count() const { return errors_.size(); }

 private:
  std::vector<std::pair<double, int>> errors_;  // and their problems
};

}  // namespace heed::testing_support
