// The layers of a model: their checks, and their form for the page's script.
#pragma once

#include <cstdint>
#include <string>
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

// Vectors as integers: element = scales[row] · numbers[row · width + i], with an error of at most
// half of scales[row], which is the row's largest magnitude / 32767. Half precision takes as many
// bytes and has errors up to 2⁻¹¹ of each number: 16 times as much or more for the largest numbers
// of a row, which decide scores in models with a few dominant dimensions.
struct StoredVectors {
  std::vector<std::int16_t> numbers;
  std::vector<float> scales;
};
StoredVectors store_vectors(const Tensor<float>& vectors);

// The vectors as the page restores them: [rows, width] in the given shape.
Tensor<float> restored(const StoredVectors& stored, const Shape& shape);

// The arrays of a checked layer as a JSON object. `index` is the number of the layer; it selects
// the row of each head for which heed's weights are included.
std::string layer_json(const LayerAttention& layer, std::int64_t index);

}}}  // namespace heed::v0::explorer
