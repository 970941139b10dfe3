// The options of a measured attention call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/forward_case.h"
#include "heed/attention.h"
#include "heed/core/random.h"
#include "heed/core/tensor.h"

namespace heed::cli {

// The values of --with; each case has one.
inline const std::vector<std::string> kCaseOptionNames{
    "none", "softcap", "score-mod", "alibi", "bias",         "sinks", "dropout",
    "clip", "t5",      "shaw-keys", "shaw",  "head-windows", "exact"};

// Holds the options of a case and the tensors that they refer to. Real is float or double.
template <class Real>
class CaseOptions {
 public:
  CaseOptions(const ForwardCase& forward, TorchGenerator& random);
  CaseOptions(const CaseOptions&) = delete;
  CaseOptions& operator=(const CaseOptions&) = delete;

  const BasicAttentionOptions<Real>& operator*() const { return options_; }

 private:
  Tensor<Real> tensor_;
  Tensor<Real> other_tensor_;
  BasicAttentionOptions<Real> options_;
};

extern template class CaseOptions<float>;
extern template class CaseOptions<double>;

}  // namespace heed::cli
