// A layer of a model as the page's script reads it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/core/config.h"
#include "heed/viz/explorer.h"

namespace heed { inline namespace v0 { namespace explorer {

// Vectors as integers: element = scales[row] · numbers[row · width + i], off by at most half of
// scales[row], which is the row's largest magnitude over 32767. Half precision takes as many bytes
// and is off by up to 2⁻¹¹ of each number: of a row's largest, which decide scores where a few
// dimensions of a model are much larger than the others, 16 times as much and more.
struct StoredVectors {
  std::vector<std::int16_t> numbers;
  std::vector<float> scales;
};
StoredVectors store_vectors(const Tensor<float>& vectors);

// What the page makes of them: [rows, width] in the given shape.
Tensor<float> restored(const StoredVectors& stored, const Shape& shape);

// The arrays of a layer that has been checked: a JSON object. `index` is the layer's number, which
// says of which row heed's weights are given, of each head: another one in each layer.
std::string layer_json(const LayerAttention& layer, std::int64_t index);

}}}  // namespace heed::v0::explorer
