// The checks of a model's page.
#pragma once

#include <cstdint>
#include <vector>

#include "heed/core/config.h"
#include "heed/viz/explorer.h"

namespace heed { inline namespace v0 { namespace explorer {

// The common shape of all layers of a model.
struct ModelShape {
  std::int64_t num_layers = 0;
  std::int64_t num_heads = 0;
  std::int64_t num_tokens = 0;
};

// Throws InvalidArgument, naming `function`, if layers do not fit each other or hold numbers that
// cannot be shown.
ModelShape check_layers(const char* function, const std::vector<LayerAttention>& layers);

// Checks a whole model in the same way.
ModelShape check_model(const char* function, const ModelAttention& model);

// The keys that each query of a layer sees, [T, T].
Tensor<bool> visible_keys(const LayerAttention& layer, std::int64_t num_tokens);

}}}  // namespace heed::v0::explorer
