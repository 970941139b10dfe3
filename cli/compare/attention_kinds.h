// The ways to attend that `heed compare masks` compares, for sequences of any length.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "heed/core/tensor.h"
#include "heed/models/causal_transformer.h"

namespace heed::cli {

// full, local, strided, columns, global, bigbird, selected, linear.
const std::vector<std::string>& attention_kind_names();

// One of them, whose windows and blocks grow with the length that is read.
struct SizedAttention {
  std::string name;
  // A query sees about one part of so many of a sequence of `length`; not 0 but for full and linear
  // attention, which have no size.
  std::int64_t parts = 0;

  // "local 1/8"
  std::string label() const;
  models::AttentionKind at(std::int64_t length) const;
  // at() in words: "sliding_window(8, 0)".
  std::string text(std::int64_t length) const;
  // How many of the pairs (query, key) of which the key is no later one are seen; nothing where
  // there are no pairs, in linear attention. Of selected blocks, whose number alone is known
  // beforehand, of blocks drawn at random.
  std::optional<double> visible_share(std::int64_t length) const;
};

// Each of `names` with each of `parts`, where it has a size.
std::vector<SizedAttention> sized_attentions(const std::vector<std::string>& names,
                                             const std::vector<std::int64_t>& parts);

// One call as a block of a model makes it, without the projections: the choice of blocks included.
// query, key and value [1, heads, length, head_dim].
Tensor<float> attend_once(const models::AttentionKind& kind, FloatView query, FloatView key,
                          FloatView value);

}  // namespace heed::cli
