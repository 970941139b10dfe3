#include <array>
#include <cstdint>
#include <vector>

#include "heed/attention/diagnostics.h"
#include "heed/viz/explorer.h"
#include "viz/explorer/model_layers.h"

namespace heed { inline namespace v0 {

namespace {

struct Pattern {
  const char* name;
  const char* explanation;
  double HeadDiagnostics::*measured;
};

constexpr std::array<Pattern, 5> kPatterns{{
    {"previous token",
     "Mean weight on the token just before: near 1 in a head that looks back by one.",
     &HeadDiagnostics::previous},
    {"first token",
     "Mean weight on the first token, where heads look that find nothing else to look at.",
     &HeadDiagnostics::first},
    {"itself", "Mean weight of a token on itself.", &HeadDiagnostics::same},
    {"next token", "Mean weight on the token just behind; 0 under a causal mask.",
     &HeadDiagnostics::next},
    {"entropy",
     "How widely a row looks: 0 where one token has all the weight, 1 where all that it sees have "
     "the same.",
     &HeadDiagnostics::entropy},
}};

AttentionDiagnostics measured(const LayerAttention& layer) {
  if (layer.query.empty()) return weight_diagnostics(layer.weights.view().to_rank(4), layer.mask);
  AttentionOptions options{.mask = layer.mask};
  options.scale = layer.scale;
  options.softcap = layer.softcap;
  return attention_diagnostics(layer.query.view().to_rank(4), layer.key.view().to_rank(4), options);
}

}  // namespace

std::vector<HeadScore> pattern_scores(const std::vector<LayerAttention>& layers) {
  const explorer::ModelShape shape = explorer::check_layers("pattern_scores", layers);
  std::vector<HeadScore> scores;
  scores.reserve(kPatterns.size());
  for (const Pattern& pattern : kPatterns) {
    scores.push_back(
        {pattern.name, pattern.explanation, Tensor<float>({shape.num_layers, shape.num_heads})});
  }
  for (std::int64_t layer = 0; layer < shape.num_layers; ++layer) {
    const auto heads = measured(layers[static_cast<std::size_t>(layer)]).heads;
    for (std::size_t i = 0; i < kPatterns.size(); ++i) {
      for (std::int64_t head = 0; head < shape.num_heads; ++head) {
        scores[i].values(layer, head) =
            static_cast<float>(heads[static_cast<std::size_t>(head)].*kPatterns[i].measured);
      }
    }
  }
  return scores;
}

}}  // namespace heed::v0
