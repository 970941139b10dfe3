/// What the heads of each layer of a model do on some sequences.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/attention/diagnostics.h"
#include "heed/core/config.h"
#include "heed/core/tensor.h"
#include "heed/models/causal_transformer.h"
#include "heed/nn/seq2seq.h"
#include "heed/nn/seq2seq_training.h"

/// A look inside models: what their heads do, and pages and tables of it.
namespace heed { inline namespace v0 { namespace inspect {

/// One layer of attention.
struct MeasuredLayer {
  std::string name;                  ///< of its module
  AttentionDiagnostics diagnostics;  ///< over all sequences
  /// Of the first sequence without padding: [num_heads, q_len, kv_len].
  Tensor<float> weights = {};
  Tensor<bool> visible = {};  ///< [q_len, kv_len]: which keys it could see; empty: all
  std::string mask = "none";  ///< what that is called
};

/// The layers of self-attention of a model that reads ids [batch, length], of which so many of each
/// sequence are real (none: all). The model's mode is as before.
/// @throws InvalidArgument as CausalTransformer::forward() and attention_diagnostics().
HEED_API std::vector<MeasuredLayer> measure_layers(models::CausalTransformer& model,
                                                   TensorView<const std::int64_t> ids,
                                                   const std::vector<std::int64_t>& lengths = {});

/// Every layer that looks at sources or targets, the targets given: self-attention and
/// cross-attention, or what aligns the decoder of a recurrent model. None where there is none.
/// @throws InvalidArgument as nn::Seq2Seq::forward().
HEED_API std::vector<MeasuredLayer> measure_layers(nn::Seq2Seq<>& model,
                                                   const nn::SequenceBatch& batch);

}}}  // namespace heed::v0::inspect
