// Reads the weights of a transformer by their names.
#pragma once

#include <vector>

#include "models/graph.h"
#include "models/weight_reader.h"

namespace heed { inline namespace v0 { namespace models {

// Reads all weights but those of an encoder beside the layers. parts.config must be set. Throws
// FormatError naming a tensor that is missing or has another shape.
void read_weights(WeightReader& reader, const WeightNames& names, Model::Parts& parts);

// Reads the products behind pooling from their folders. Throws FormatError, IoError.
void read_dense(const std::vector<PooledDense>& modules, WeightReader::Reads reads,
                Model::Parts& parts);

}}}  // namespace heed::v0::models
