// A forward pass: the tokens that it reads, and what it does with them layer by layer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heed/core/tensor.h"
#include "heed/models/model.h"
#include "heed/nn/past.h"
#include "models/parts.h"

namespace heed { inline namespace v0 { namespace models {

// The tokens of a pass: of whole texts, or of one text that goes on after what a past keeps.
struct PassInputs {
  std::span<const std::int64_t> ids;
  std::span<const std::int64_t> boundaries;  // of the texts
  std::span<const std::int64_t> type_ids;    // or none
  nn::Past* past = nullptr;

  std::int64_t size() const noexcept { return static_cast<std::int64_t>(ids.size()); }
  std::int64_t num_texts() const noexcept {
    return static_cast<std::int64_t>(boundaries.size()) - 1;
  }
};

// Throws InvalidArgument as Model::forward.
void check_inputs(const char* function, const ModelConfig& config, const PassInputs& inputs);

// Hidden states after the last layer and norm, [tokens, hidden_size], of checked inputs.
Tensor<float> run_graph(const Model::Parts& parts, const PassInputs& inputs,
                        const ForwardOptions& options);

// Applies a norm to every row; out may be x.
void apply_norm(const Norm& norm, const ModelConfig& config, FloatView x, TensorView<float> out);

}}}  // namespace heed::v0::models
