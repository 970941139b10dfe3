// A forward pass: its input tokens, and the computation through all layers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heed/core/tensor.h"
#include "heed/models/model.h"
#include "heed/nn/past.h"
#include "models/parts.h"

namespace heed { inline namespace v0 { namespace models {

// The tokens of a pass: of whole texts, or of one text that continues a past.
struct PassInputs {
  std::span<const std::int64_t> ids;
  std::span<const std::int64_t> boundaries;  // the texts' first tokens, and the total
  std::span<const std::int64_t> type_ids;    // may be empty
  nn::Past* past = nullptr;

  std::int64_t size() const noexcept { return static_cast<std::int64_t>(ids.size()); }
  std::int64_t num_texts() const noexcept {
    return static_cast<std::int64_t>(boundaries.size()) - 1;
  }
};

// Throws InvalidArgument as Model::forward does.
void check_inputs(const char* function, const ModelConfig& config, const PassInputs& inputs);

// Hidden states [tokens, hidden_size] after the last layer and norm. The inputs must be checked.
Tensor<float> run_graph(const Model::Parts& parts, const PassInputs& inputs,
                        const ForwardOptions& options);

// Applies a norm to every row; out may be x.
void apply_norm(const Norm& norm, const ModelConfig& config, FloatView x, TensorView<float> out);

}}}  // namespace heed::v0::models
