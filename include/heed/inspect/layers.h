/// Measurements of the heads of each layer of a model on some sequences.
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

/// Inspection of models: measurements of their heads, as pages and tables.
namespace heed { inline namespace v0 { namespace inspect {

/// The measurements of one layer of attention.
struct MeasuredLayer {
  std::string name;                  ///< of its module
  AttentionDiagnostics diagnostics;  ///< over all sequences
  /// The weights of the first sequence without padding: [num_heads, q_len, kv_len].
  Tensor<float> weights = {};
  Tensor<bool> visible = {};  ///< [q_len, kv_len]: true where a query sees a key; empty: all
  std::string mask = "none";  ///< the description of the mask
};

/// Measures the self-attention layers of a causal model. The model's mode does not change.
/// @param ids [batch, length]
/// @param lengths the number of real tokens of each sequence; empty: all
/// @throws InvalidArgument as CausalTransformer::forward() and attention_diagnostics().
HEED_API std::vector<MeasuredLayer> measure_layers(models::CausalTransformer& model,
                                                   TensorView<const std::int64_t> ids,
                                                   const std::vector<std::int64_t>& lengths = {});

/// Measures every attention layer over sources and targets, given the targets: self-attention and
/// cross-attention, or the alignment of a recurrent model's decoder. Empty where there is none.
/// @throws InvalidArgument as nn::Seq2Seq::forward().
HEED_API std::vector<MeasuredLayer> measure_layers(nn::Seq2Seq<>& model,
                                                   const nn::SequenceBatch& batch);

}}}  // namespace heed::v0::inspect
