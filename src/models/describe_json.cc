// Descriptions of models as JSON.
#include <nlohmann/json.hpp>

#include "heed/models/checkpoint.h"
#include "heed/models/describe.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::string_view pooling_name(Pooling::Kind kind) {
  switch (kind) {
    case Pooling::Kind::kMean:
      return "mean";
    case Pooling::Kind::kFirstToken:
      return "first_token";
    case Pooling::Kind::kLastToken:
      return "last_token";
    case Pooling::Kind::kMax:
      return "max";
    case Pooling::Kind::kMeanSqrtLength:
      return "mean_sqrt_length";
    case Pooling::Kind::kWeightedMean:
      return "weighted_mean";
  }
  return "";
}

Json pooling_json(const Pooling& pooling) {
  Json kinds = Json::array();
  for (const Pooling::Kind kind : pooling.kinds) kinds.push_back(pooling_name(kind));
  Json dense = Json::array();
  for (const PooledDense& module : pooling.dense) dense.push_back(module.out_size);
  Json json{{"kinds", kinds},
            {"dense", dense},
            {"normalize", pooling.normalize},
            {"prompt", pooling.prompt}};
  json["max_tokens"] = pooling.max_tokens == kUnbounded ? Json(nullptr) : Json(pooling.max_tokens);
  return json;
}

Json config_json(const ModelConfig& config) {
  Json layers = Json::array();
  for (const LayerConfig& layer : config.layers) {
    Json json{{"window", or_null(layer.window)}, {"rotary_base", nullptr}};
    if (layer.rotary) json["rotary_base"] = config.rotaries[*layer.rotary].base;
    layers.push_back(json);
  }
  return {{"family", to_string(config.family)},
          {"is_causal", config.is_causal()},
          {"vocab_size", config.vocab_size},
          {"num_layers", config.num_layers},
          {"num_heads", config.num_heads},
          {"num_kv_heads", config.num_kv_heads},
          {"head_dim", config.head_dim},
          {"hidden_size", config.hidden_size},
          {"intermediate_size", config.intermediate_size},
          {"max_positions", config.max_positions},
          {"score_softcap", or_null(config.score_softcap)},
          {"logit_softcap", or_null(config.logit_softcap)},
          {"end_ids", config.end_ids},
          {"pooling", config.pooling ? pooling_json(*config.pooling) : Json(nullptr)},
          {"layers", layers}};
}

}  // namespace

std::string to_json(const ModelDescription& description) {
  Json types = Json::array();
  for (const StoredTensors& type : description.tensors) {
    types.push_back({{"type", type.type},
                     {"tensors", type.tensors},
                     {"elements", type.elements},
                     {"bytes", type.bytes},
                     {"is_read", type.is_read}});
  }
  const auto& config = description.config;
  const Json json{{"path", description.path.string()},
                  {"kind", description.is_gguf ? "gguf" : "folder"},
                  {"opens", description.opens()},
                  {"refusals", description.refusals},
                  {"architecture", description.architecture},
                  {"config", config ? config_json(*config) : Json(nullptr)},
                  {"num_files", description.num_files},
                  {"num_elements", description.num_elements()},
                  {"num_bytes", description.num_bytes()},
                  {"tensors", types},
                  {"num_tokens", or_null(description.num_tokens)},
                  {"has_chat_template", description.has_chat_template}};
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

}}}  // namespace heed::v0::models
