// The loss of a model that predicts tokens.
#pragma once

#include <cstdint>
#include <span>

#include "heed/core/tensor.h"
#include "heed/models/model.h"

namespace heed { inline namespace v0 { namespace models {

// Σ −ln p(ids[t] | ids before it), in nats, over the tokens first ≤ t < ids.size(), with first ≥ 1.
// `hidden` [ids.size(), embed_dim] holds the model's hidden states for all ids.
double sum_of_losses(const Model& model, FloatView hidden, std::span<const std::int64_t> ids,
                     std::int64_t first);

}}}  // namespace heed::v0::models
