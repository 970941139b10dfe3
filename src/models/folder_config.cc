// Configurations of folders in the format of transformers.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heed/models/config.h"
#include "models/config_reading.h"
#include "models/folder_families.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

// Families are sought in this order, and listed in it.
std::vector<FolderFamily> all_families() {
  std::vector<FolderFamily> all;
  for (const auto families : {encoder_families(), gpt_families(), llama_like_families(),
                              gemma_families(), fused_families(), encoder_decoder_families()}) {
    all.insert(all.end(), families.begin(), families.end());
  }
  return all;
}

ModelConfig config_of(ConfigFields& fields) {
  const std::string type = fields.at("model_type").string();
  const std::vector<FolderFamily> families = all_families();
  const auto found = std::find_if(families.begin(), families.end(),
                                  [&](const FolderFamily& family) { return family.type == type; });
  if (found != families.end()) return found->read(fields, type);
  std::vector<std::string_view> types;
  for (const FolderFamily& family : families) types.push_back(family.type);
  const std::string_view last = types.back();
  types.pop_back();
  fields.json().fail(
      fmt::format(": model_type is \"{}\", expected {} or {}", type, fmt::join(types, ", "), last));
}

// Refuses weights that were quantised by AWQ, GPTQ, bitsandbytes and others.
void refuse_quantised(ConfigFields& fields, const char* key) {
  const auto found = fields.find(key);
  if (!found || !found->is(io::JsonKind::kObject) || found->value().items.empty()) {
    return fields.expect_nothing(key, "heed reads quantised weights from GGUF files");
  }
  const std::string method = found->string_or("quant_method", "a method without a name");
  found->fail(
      fmt::format(": the weights are quantised by {}, which heed does not read; it reads "
                  "GGUF files of the same model, and folders of numbers",
                  method));
}

// True for the name of a class of transformers' for models of a type: "modeling_phi3.Phi3Model" for
// "phi3".
bool is_class_of(std::string_view name, std::string_view type) {
  name.remove_prefix(std::min(name.size(), name.rfind('.') + 1));
  const auto same = [](char letter, char other) {
    return std::tolower(static_cast<unsigned char>(letter)) == other;
  };
  std::string plain(type);
  plain.erase(
      std::remove_if(plain.begin(), plain.end(), [](char c) { return c == '_' || c == '-'; }),
      plain.end());
  return name.size() >= plain.size() && std::equal(plain.begin(), plain.end(), name.begin(),
                                                   [&](char a, char b) { return same(b, a); });
}

// Folders of models that are older than their classes in transformers bring copies of these, which
// transformers does not use either. Other code may compute something else.
void check_auto_map(ConfigFields& fields) {
  const auto map = fields.find("auto_map");
  if (!map) return;
  const std::string type = fields.at("model_type").string();
  ConfigFields classes(*map);
  for (const std::string& key : map->value().keys) {
    const io::JsonPart found = classes.at(key);
    if (found.is(io::JsonKind::kString) && is_class_of(found.string(), type)) continue;
    found.fail(fmt::format(
        " is code of the folder's own, which heed does not run, expected a class of {}", type));
  }
}

// Checks members of all models for which heed supports one value only.
void check_common(ConfigFields& fields, const ModelConfig& config) {
  constexpr std::string_view kEncoderDecoder = "heed has this family without the other half";
  if (!config.encoder) fields.expect_nothing("is_encoder_decoder", kEncoderDecoder);
  fields.expect_nothing("tie_encoder_decoder", kEncoderDecoder);
  fields.expect_nothing("add_cross_attention", kEncoderDecoder);
  fields.expect_nothing("cross_attention_hidden_size", kEncoderDecoder);
  if (config.is_causal()) {
    fields.expect("is_causal", true, "heed's decoders see no later tokens");
    fields.find("is_decoder");  // heed's decoders are decoders with either value
  }
  check_auto_map(fields);
  refuse_quantised(fields, "quantization_config");
  refuse_quantised(fields, "compression_config");
  fields.expect_nothing("pruned_heads", "heads that were taken out are not in the file");
}

// Reads one token or an array of them.
std::vector<std::int64_t> end_ids_of(ConfigFields& fields) {
  std::vector<std::int64_t> ids;
  const std::optional<io::JsonPart> ends = fields.find("eos_token_id");
  if (!ends) return ids;
  const bool is_array = ends->is(io::JsonKind::kArray);
  for (const io::JsonPart& end : is_array ? ends->items() : std::vector{*ends}) {
    if (std::find(ids.begin(), ids.end(), end.integer()) == ids.end()) ids.push_back(end.integer());
  }
  return ids;
}

// If generation_config.json gives the tokens that end a text, it takes precedence. Its other
// members control sampling, which callers set themselves.
void read_generation_config(const std::filesystem::path& folder, ModelConfig& config) {
  const std::filesystem::path path = folder / "generation_config.json";
  if (!std::filesystem::exists(path)) return;
  const JsonDocument document(path);
  ConfigFields fields(document.root());
  if (fields.has("eos_token_id")) config.end_ids = end_ids_of(fields);
}

}  // namespace

ModelConfig read_config(const std::filesystem::path& folder) {
  const std::filesystem::path transformer = transformer_folder(folder);
  const JsonDocument document(transformer / "config.json");
  ConfigFields fields(document.root());
  ModelConfig config = config_of(fields);
  check_common(fields, config);
  config.vocab_size = fields.integer("vocab_size");
  config.architecture = fields.at("model_type").string();
  if (const auto names = fields.find("architectures"); names && !names->items().empty()) {
    config.architecture = names->items().front().string();
  }
  config.end_ids = end_ids_of(fields);
  if (config.layers.empty()) config.layers = equal_layers(config);
  fields.ignore(keys_without_effect());
  fields.ignore(keys_of_generation());
  fields.check_all_known();
  read_generation_config(transformer, config);
  config.pooling = read_pooling(folder, config.hidden_size);
  check_config(config, fields.file());
  return config;
}

}}}  // namespace heed::v0::models
