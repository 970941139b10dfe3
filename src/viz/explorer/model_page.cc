// The page of a model: the data that all layers share, and each layer.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "heed/viz/explorer.h"
#include "viz/explorer/model_layers.h"
#include "viz/explorer/page.h"

namespace heed { inline namespace v0 {

namespace {

using explorer::to_json;

std::string joined(const std::vector<std::string>& items) {
  return fmt::format("[{}]", fmt::join(items, ","));
}

// A list of distinct masks: most models have one, or two that alternate.
class MaskList {
 public:
  explicit MaskList(std::int64_t num_tokens) : num_tokens_(num_tokens) {}

  std::size_t index_of(const LayerAttention& layer) {
    const std::string mask =
        to_json({{"name", to_json(layer.mask.description())},
                 {"sees", explorer::encoded(explorer::visible_keys(layer, num_tokens_))}});
    const auto found = std::find(masks_.begin(), masks_.end(), mask);
    const auto index = static_cast<std::size_t>(found - masks_.begin());
    if (found == masks_.end()) masks_.push_back(mask);
    return index;
  }
  std::string json() const { return joined(masks_); }

 private:
  std::int64_t num_tokens_;
  std::vector<std::string> masks_;
};

std::string about_json(const LayerAttention& layer, std::size_t mask) {
  std::map<std::string, std::string> members{{"mask", fmt::to_string(mask)}};
  if (!layer.query.empty()) {
    const std::int64_t head_dim = layer.query.extent(2);
    const float scale = layer.scale.value_or(1 / std::sqrt(static_cast<float>(head_dim)));
    members["headDim"] = fmt::to_string(head_dim);
    members["headsPerKey"] = fmt::to_string(layer.query.extent(0) / layer.key.extent(0));
    members["scale"] = to_json(static_cast<double>(scale));
    members["softcap"] = to_json(static_cast<double>(layer.softcap));
  }
  if (!layer.value.empty()) {
    const std::int64_t num_heads =
        layer.query.empty() ? layer.weights.extent(0) : layer.query.extent(0);
    members["valueDim"] = fmt::to_string(layer.value.extent(2));
    members["headsPerValue"] = fmt::to_string(num_heads / layer.value.extent(0));
  }
  return to_json(members);
}

struct HeadPlace {
  std::int64_t layer = 0;
  std::int64_t head = 0;
};

// The head that the page opens: among those that the model leaves open, the one with the most
// weight on a neighbour or on the token itself. Heads that attend to the first token or evenly to
// all tokens have no pattern.
HeadPlace opening_of(const ModelAttention& model, const std::vector<HeadScore>& patterns) {
  HeadPlace best{model.opening_layer.value_or(0), model.opening_head.value_or(0)};
  float most = -1;
  for (const HeadScore& score : patterns) {
    if (score.name == "first token" || score.name == "entropy") continue;
    for (std::int64_t layer = 0; layer < score.values.extent(0); ++layer) {
      for (std::int64_t head = 0; head < score.values.extent(1); ++head) {
        const bool is_open = layer == model.opening_layer.value_or(layer) &&
                             head == model.opening_head.value_or(head);
        if (!is_open || score.values(layer, head) <= most) continue;
        most = score.values(layer, head);
        best = {layer, head};
      }
    }
  }
  return best;
}

std::string score_json(const HeadScore& score) {
  std::vector<std::string> values;
  for (const float value : score.values.elements()) values.push_back(fmt::format("{:.6g}", value));
  return to_json({{"name", to_json(score.name)},
                  {"explanation", to_json(score.explanation)},
                  {"values", joined(values)}});
}

std::string model_json(const ModelAttention& model, const explorer::ModelShape& shape) {
  MaskList masks(shape.num_tokens);
  std::vector<std::string> layers;
  for (const LayerAttention& layer : model.layers) {
    layers.push_back(about_json(layer, masks.index_of(layer)));
  }
  std::vector<HeadScore> patterns;
  if (model.scores.empty() || !model.opening_layer || !model.opening_head) {
    patterns = pattern_scores(model.layers);
  }
  const HeadPlace opening = opening_of(model, patterns);
  std::vector<std::string> scores;
  for (const HeadScore& score : model.scores.empty() ? patterns : model.scores) {
    scores.push_back(score_json(score));
  }
  return to_json(
      {{"title", to_json(model.title)},
       {"note", to_json(model.note)},
       {"tokens", to_json(model.tokens)},
       {"words", fmt::format("[{}]", fmt::join(model.words, ","))},
       {"numHeads", fmt::to_string(shape.num_heads)},
       {"layers", joined(layers)},
       {"masks", masks.json()},
       {"scores", joined(scores)},
       {"openingLayer", fmt::to_string(opening.layer)},
       {"openingHead", fmt::to_string(opening.head)},
       {"openingQuery", fmt::to_string(model.opening_query.value_or(shape.num_tokens / 2))}});
}

}  // namespace

std::string explorer_model_page(const ModelAttention& model) {
  const explorer::ModelShape shape = explorer::check_model("explorer_model_page", model);
  const std::string data =
      fmt::format(R"({{"hasServer":false,"maps":{},"sentences":[],"model":{}}})",
                  explorer::color_maps_json(), model_json(model, shape));
  std::vector<std::string> layers;
  for (const LayerAttention& layer : model.layers) {
    layers.push_back(explorer::layer_json(layer, static_cast<std::int64_t>(layers.size())));
  }
  return explorer::assembled_page(data, layers, false);
}

}}  // namespace heed::v0
