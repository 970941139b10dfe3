// What checkpoints call the weights of each family.
#pragma once

#include <span>
#include <string_view>

#include "heed/models/config.h"

namespace heed { inline namespace v0 { namespace models {

// A tensor that files have though no result depends on it. The name may begin or end with '*',
// which stands for anything; it is that behind the prefix.
struct HarmlessTensor {
  std::string_view name;
  std::string_view reason;
};

// The names of weights without ".weight" and ".bias". Those of a layer stand after layer(i); empty:
// the family has no such part.
struct WeightNames {
  // What may stand before each name: models that were saved with a head have their base's name.
  std::string_view prefix;
  std::string_view tokens;
  std::string_view positions;
  std::string_view token_types;
  std::string_view embedding_norm;
  std::string_view final_norm;
  std::string_view head;  // without the prefix
  std::string_view layer;
  std::string_view attention_norm;
  std::string_view query, key, value;
  std::string_view fused;  // the rows of query, key and value, one below the other
  std::string_view out;
  std::string_view mlp_norm;
  std::string_view gate, up, down;
  bool is_transposed = false;  // matrices of layers are [columns, rows]
  std::span<const HarmlessTensor> harmless = {};
};

const WeightNames& names_in_folder(Family family);
const WeightNames& names_in_gguf(Family family);

}}}  // namespace heed::v0::models
