// What the page of a model refuses.
#pragma once

#include <cstdint>
#include <vector>

#include "heed/core/config.h"
#include "heed/viz/explorer.h"

namespace heed { inline namespace v0 { namespace explorer {

// The shape that all layers of a model have in common.
struct ModelShape {
  std::int64_t num_layers = 0;
  std::int64_t num_heads = 0;
  std::int64_t num_tokens = 0;
};

// Throws InvalidArgument, in the name of `function`, where layers do not fit each other or hold
// numbers that nothing can be made of.
ModelShape check_layers(const char* function, const std::vector<LayerAttention>& layers);

// The same for the whole model.
ModelShape check_model(const char* function, const ModelAttention& model);

// Which keys each query of a layer sees, [T, T].
Tensor<bool> visible_keys(const LayerAttention& layer, std::int64_t num_tokens);

}}}  // namespace heed::v0::explorer
