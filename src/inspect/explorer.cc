#include "heed/inspect/explorer.h"

#include <fmt/format.h>

#include <utility>

#include "heed/core/error.h"
#include "heed/nn/functional.h"

namespace heed { inline namespace v0 { namespace inspect {

namespace {

constexpr std::int64_t kMostPageTokens = 1024;

std::vector<std::string> numbered(const std::string& what, std::int64_t count) {
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < count; ++i) names.push_back(fmt::format("{}{}", what, i));
  return names;
}

// x · weightᵀ + bias, as [num_heads, num_tokens, head_dim].
Tensor<float> projected(const SentenceAttention& attention,
                        const LinearParameters<float>& projection) {
  const Tensor<float> all = linear(attention.vectors.view().to_rank(3), projection);
  return to_tensor(split_heads(all, attention.settings.num_heads).select(0, 0));
}

// The token names of a layer's queries and keys: a decoder attends to the target and to the source.
TokenNames names_of(const MeasuredLayer& layer, const ModelMeasurement& measured) {
  const bool is_decoder = layer.name.find("decoder") != std::string::npos;
  const bool is_cross = layer.name.find("cross") != std::string::npos || layer.name == "attention";
  TokenNames names{.queries = is_decoder || is_cross ? measured.target : measured.source};
  if (is_cross) names.keys = measured.source;
  return names;
}

}  // namespace

ExplorerSentence to_explorer(const SentenceAttention& attention) {
  const SentenceSettings& settings = attention.settings;
  ExplorerSentence sentence;
  sentence.title = attention.text;
  sentence.note = fmt::format(
      "Computed by heed with random parameters (seed {}), which have learned nothing: it shows how "
      "attention works, not what a language model knows.",
      settings.seed);
  sentence.tokens = attention.labels;
  sentence.query = projected(attention, attention.parameters.query);
  sentence.key = projected(attention, attention.parameters.key);
  sentence.value = projected(attention, attention.parameters.value);
  sentence.weights = attention.weights;
  sentence.visible = attention.visible;
  sentence.mask = settings.mask.description();
  sentence.temperature = settings.temperature;
  // An odd width has no position encoding: the page shows that of the next width.
  sentence.d_model = settings.d_model + settings.d_model % 2;
  return sentence;
}

ExplorerSentence to_explorer(const std::string& title, Tensor<float> weights,
                             const TokenNames& names) {
  const std::int64_t q_len = weights.extent(1);
  const std::int64_t kv_len = weights.extent(2);
  if (q_len > kMostPageTokens || kv_len > kMostPageTokens) {
    throw InvalidArgument(fmt::format("a page shows at most {} queries and keys, found {} and {}",
                                      kMostPageTokens, q_len, kv_len));
  }
  const bool is_cross = q_len != kv_len || !names.keys.empty();
  ExplorerSentence sentence{.title = title, .tokens = names.queries};
  if (sentence.tokens.empty()) sentence.tokens = numbered(is_cross ? "query " : "", q_len);
  if (is_cross) sentence.keys = names.keys.empty() ? numbered("key ", kv_len) : names.keys;
  sentence.weights = std::move(weights);
  return sentence;
}

std::vector<ExplorerSentence> to_explorer(const ModelMeasurement& measured) {
  std::vector<ExplorerSentence> sentences;
  for (const MeasuredLayer& layer : measured.layers) {
    ExplorerSentence& sentence =
        sentences.emplace_back(to_explorer(layer.name, layer.weights, names_of(layer, measured)));
    sentence.note = fmt::format("The first of {}.", measured.sequences);
    sentence.visible = layer.visible;
    sentence.mask = layer.mask;
  }
  return sentences;
}

}}}  // namespace heed::v0::inspect
