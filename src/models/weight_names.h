// The names of weights in the checkpoints of each family.
#pragma once

#include <span>
#include <string_view>

#include "heed/models/config.h"

namespace heed { inline namespace v0 { namespace models {

// A tensor on which no result depends although files have it. The name is the part after the
// prefix. It may begin or end with '*', which matches anything.
struct HarmlessTensor {
  std::string_view name;
  std::string_view reason;
};

// The names of weights without ".weight" and ".bias". Names of a layer's weights follow layer(i);
// empty if the family has no such part.
struct WeightNames {
  // An optional prefix of each name: models saved with a head have the name of their base there.
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
  std::string_view fused;  // the rows of query, key and value, concatenated
  std::string_view out;
  std::string_view mlp_norm;
  std::string_view gate, up, down;
  bool is_transposed = false;  // true if matrices of layers are stored as [columns, rows]
  std::span<const HarmlessTensor> harmless = {};
};

const WeightNames& names_in_folder(Family family);
const WeightNames& names_in_gguf(Family family);

}}}  // namespace heed::v0::models
