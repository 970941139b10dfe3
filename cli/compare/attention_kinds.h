// The kinds of attention that `heed compare masks` compares, for sequences of any length.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "heed/core/tensor.h"
#include "heed/models/causal_transformer.h"

namespace heed::cli {

// Returns full, local, strided, columns, global, bigbird, selected, linear.
const std::vector<std::string>& attention_kind_names();

// A kind of attention whose windows and blocks grow with the sequence length.
struct SizedAttention {
  std::string name;
  // A query sees about `length` / `parts` positions. 0 for full and linear attention, which have no
  // size.
  std::int64_t parts = 0;

  // Returns for example "local 1/8".
  std::string label() const;
  models::AttentionKind at(std::int64_t length) const;
  // Returns at() in words, for example "sliding_window(8, 0)".
  std::string text(std::int64_t length) const;
  // Returns the visible part of the causal (query, key) pairs; empty for linear attention, which
  // has no pairs. Which blocks are selected depends on the content: their part is that of random
  // queries and keys.
  std::optional<double> visible_share(std::int64_t length) const;
};

// Returns each of `names`, combined with each of `parts` if the kind has a size.
std::vector<SizedAttention> sized_attentions(const std::vector<std::string>& names,
                                             const std::vector<std::int64_t>& parts);

// Computes one call as a block of a model does, without the projections and including the selection
// of blocks. query, key and value are [1, heads, length, head_dim].
Tensor<float> attend_once(const models::AttentionKind& kind, FloatView query, FloatView key,
                          FloatView value);

// Returns the workspace of that call's plan; empty for linear attention, which has no plan.
std::optional<std::int64_t> workspace_bytes(const models::AttentionKind& kind, FloatView query,
                                            FloatView key);

}  // namespace heed::cli
