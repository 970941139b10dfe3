#include "translation/published.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "heed/models/generate.h"

namespace heed::cli {

namespace {

// The most tokens of a translation: that of transformers' configurations of Marian.
constexpr std::int64_t kMostTokens = 512;

// Where each written token looked: the row of a token is that of the step that chose it, whose last
// input is the token before.
Tensor<float> alignment_of(const models::Model& model, const std::vector<std::int64_t>& source_ids,
                           const std::vector<std::int64_t>& written) {
  const models::ModelConfig& config = model.config();
  std::vector<std::int64_t> ids{config.start_id};
  ids.insert(ids.end(), written.begin(), written.end() - 1);
  const auto tokens = static_cast<std::int64_t>(ids.size());
  const auto keys = static_cast<std::int64_t>(source_ids.size());
  auto alignment =
      Tensor<float>::uninitialized({config.num_layers * config.num_heads, tokens, keys});
  const models::Source source = model.read_source(source_ids);
  models::ForwardOptions options{.source = &source};
  options.cross_observer = [&](const models::AttentionCall& call) {
    const Tensor<float> weights = models::weights_of(call);
    std::copy(weights.elements().begin(), weights.elements().end(),
              alignment.data() + call.layer * weights.num_elements());
  };
  model.forward(models::Inputs::of(std::move(ids)), options);
  return alignment;
}

}  // namespace

train::Translation translate(const models::Model& model, const std::string& sentence) {
  const std::vector<std::int64_t> source = model.tokenizer().ids(sentence);
  const models::Generated written =
      models::generate(model, source, {.max_tokens = kMostTokens, .log_probs = true});
  train::Translation translation;
  translation.source = model.tokenizer().labels(source);
  translation.target = model.tokenizer().labels(written.ids);
  translation.text = model.tokenizer().decode(written.ids);
  translation.hypothesis.tokens = written.ids;
  translation.hypothesis.log_probability =
      std::accumulate(written.log_probs.begin(), written.log_probs.end(), 0.0);
  translation.hypothesis.is_complete = written.reason == models::EndReason::kEndToken;
  if (!written.ids.empty()) {
    translation.hypothesis.alignment = alignment_of(model, source, written.ids);
  }
  return translation;
}

}  // namespace heed::cli
