// Linear attention with the kernels of one instruction set.
#pragma once

#include "attention/kernels/kernels.h"
#include "attention/request/linear_attention.h"

namespace heed { inline namespace v0 { namespace recurrent {

LinearAttentionOutput<float> attend_by_kernels(const kernels::KernelTable& table,
                                               const Problem<float>& problem);

Tensor<float> attend_by_features(const kernels::KernelTable& table, FloatView query, FloatView key,
                                 FloatView value, const FeatureMapOptions& options);

}}}  // namespace heed::v0::recurrent
