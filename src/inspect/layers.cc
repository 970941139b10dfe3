#include "heed/inspect/layers.h"

#include <algorithm>

#include "heed/attention/mask.h"
#include "heed/attention/statistics.h"
#include "heed/nn/special_tokens.h"
#include "heed/nn/tape.h"

namespace heed { inline namespace v0 { namespace inspect {

namespace {

// The number of tokens of each target, up to and including its end.
std::vector<std::int64_t> target_lengths(const nn::SequenceBatch& batch) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t b = 0; b < batch.tgt_out.extent(0); ++b) {
    const auto ids = batch.tgt_out.view().select(0, b).elements();
    lengths.push_back(std::find(ids.begin(), ids.end(), kPadId) - ids.begin());
  }
  return lengths;
}

// The weights of the first sequence of a batch, without padding.
Tensor<float> first_weights(const nn::AttentionCall<float>& call, const DiagnosticsOptions& real) {
  const std::int64_t heads = call.query.extent(1);
  const std::int64_t queries =
      real.q_lengths.empty() ? call.query.extent(2) : real.q_lengths.front();
  const std::int64_t keys = real.kv_lengths.empty() ? call.key.extent(2) : real.kv_lengths.front();
  std::vector<AttentionRow> rows;
  for (std::int64_t i = 0; i < heads * queries; ++i) {
    rows.push_back({.head = i / queries, .query = i % queries});
  }
  const auto weights = attention_weights(call.query, call.key, rows, call.options);
  return to_tensor(weights.view().slice(1, 0, keys)).reshaped({heads, queries, keys});
}

// The keys that the first sequence sees, without padding. A model's masks are equal for all heads.
Tensor<bool> first_visible(const nn::AttentionCall<float>& call, const Tensor<float>& weights) {
  const Tensor<bool> visible = materialize_allow(
      call.options.mask,
      {.batch = call.query.extent(0), .q_len = call.query.extent(2), .kv_len = call.key.extent(2)});
  const auto first = visible.view().select(0, 0).select(0, 0);
  return to_tensor(first.slice(0, 0, weights.extent(1)).slice(1, 0, weights.extent(2)));
}

MeasuredLayer measured(const std::string& name, const nn::AttentionCall<float>& call,
                       const DiagnosticsOptions& lengths) {
  MeasuredLayer layer{name, attention_diagnostics(call.query, call.key, call.options, lengths),
                      first_weights(call, lengths)};
  layer.visible = first_visible(call, layer.weights);
  layer.mask = call.options.mask.description();
  return layer;
}

// Runs in evaluation mode and without a graph; restores the mode.
template <class Run>
void run_quietly(nn::Module<>& model, Run run) {
  const nn::NoGrad no_grad;
  const bool was_training = model.is_training();
  model.eval();
  run();
  model.train(was_training);
}

}  // namespace

std::vector<MeasuredLayer> measure_layers(models::CausalTransformer& model,
                                          TensorView<const std::int64_t> ids,
                                          const std::vector<std::int64_t>& lengths) {
  std::vector<MeasuredLayer> layers;
  const nn::AttentionObserver<> observer(
      model, [&](const std::string& name, const nn::AttentionCall<float>& call) {
        layers.push_back(measured(name, call, {lengths, lengths}));
      });
  run_quietly(model, [&] { model.forward(ids); });
  return layers;
}

std::vector<MeasuredLayer> measure_layers(nn::Seq2Seq<>& model, const nn::SequenceBatch& batch) {
  const std::vector<std::int64_t> targets = target_lengths(batch);
  std::vector<MeasuredLayer> layers;
  const nn::AttentionObserver<> observer(
      model, [&](const std::string& name, const nn::AttentionCall<float>& call) {
        const bool is_cross = name.find("cross") != std::string::npos;
        const DiagnosticsOptions lengths{is_cross ? targets : batch.src_lengths, batch.src_lengths};
        layers.push_back(measured(name, call, lengths));
      });
  run_quietly(model, [&] {
    const auto decoded = model.forward(batch.src, batch.tgt_in, batch.src_lengths);
    // A recurrent model has no layers to observe; its weights are part of its output.
    if (!layers.empty() || decoded.weights.num_elements() == 0) return;
    const auto first = decoded.weights.view().select(0, 0);
    layers.push_back(
        {"attention", weight_diagnostics(decoded.weights, {}, {targets, batch.src_lengths}),
         to_tensor(first.slice(1, 0, targets.front()).slice(2, 0, batch.src_lengths.front()))});
  });
  return layers;
}

}}}  // namespace heed::v0::inspect
