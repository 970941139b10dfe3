#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heed/core/error.h"
#include "models/config_reading.h"

namespace heed { inline namespace v0 { namespace models {

namespace fs = std::filesystem;

namespace {

struct PoolingMode {
  std::string_view name;
  const char* earlier_key;  // in files before sentence-transformers 6: one boolean for each mode
  Pooling::Kind kind;
};
// In the order in which the modes of earlier files are concatenated.
constexpr PoolingMode kPoolingModes[] = {
    {"cls", "pooling_mode_cls_token", Pooling::Kind::kFirstToken},
    {"max", "pooling_mode_max_tokens", Pooling::Kind::kMax},
    {"mean", "pooling_mode_mean_tokens", Pooling::Kind::kMean},
    {"mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens", Pooling::Kind::kMeanSqrtLength},
    {"weightedmean", "pooling_mode_weightedmean_tokens", Pooling::Kind::kWeightedMean},
    {"lasttoken", "pooling_mode_lasttoken", Pooling::Kind::kLastToken}};

Pooling::Kind kind_named(const io::JsonPart& name) {
  for (const PoolingMode& mode : kPoolingModes) {
    if (mode.name == name.string()) return mode.kind;
  }
  name.fail(
      fmt::format(" is \"{}\", expected cls, max, mean, mean_sqrt_len_tokens, weightedmean "
                  "or lasttoken",
                  name.string()));
}

std::vector<Pooling::Kind> read_kinds(ConfigFields& fields) {
  std::vector<Pooling::Kind> kinds;
  for (const PoolingMode& mode : kPoolingModes) {
    if (fields.boolean_or(mode.earlier_key, false)) kinds.push_back(mode.kind);
  }
  const std::optional<io::JsonPart> names = fields.find("pooling_mode");
  if (!names) return kinds.empty() ? std::vector{Pooling::Kind::kMean} : kinds;
  kinds.clear();
  if (!names->is(io::JsonKind::kArray)) return {kind_named(*names)};
  for (const io::JsonPart& name : names->items()) kinds.push_back(kind_named(name));
  if (kinds.empty()) names->fail(" is empty, expected at least one mode");
  return kinds;
}

// The prompt before each text that is encoded without a named prompt.
std::string default_prompt(const fs::path& folder) {
  const fs::path path = folder / "config_sentence_transformers.json";
  if (!fs::exists(path)) return "";
  const JsonDocument document(path);
  ConfigFields fields(document.root());
  fields.expect("model_type", "SentenceTransformer", "heed makes one vector of a text");
  const std::string_view others[] = {"__version__", "requirements", "similarity_fn_name"};
  fields.ignore(others);
  const std::optional<io::JsonPart> prompts = fields.find("prompts");
  const std::optional<io::JsonPart> name = fields.find("default_prompt_name");
  fields.check_all_known();
  if (!name) return "";
  const auto prompt = prompts ? prompts->find(name->string()) : std::nullopt;
  if (!prompt) {
    name->fail(fmt::format(" is \"{}\", expected the name of one of the prompts", name->string()));
  }
  return prompt->string();
}

// The longest text in tokens according to tokenizer_config.json.
std::int64_t longest_for_tokenizer(const fs::path& folder) {
  const fs::path path = folder / "tokenizer_config.json";
  if (!fs::exists(path)) return kUnbounded;
  const JsonDocument document(path);
  const auto length = document.root().find("model_max_length");
  // The value of tokenizers without a limit is 10³⁰.
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max() / 2;
  if (!length || length->number() > static_cast<double>(kLargest)) return kUnbounded;
  return length->integer();
}

// The number of tokens of a text that are read.
std::int64_t read_max_tokens(const fs::path& folder) {
  const fs::path path = folder / "sentence_bert_config.json";
  if (!fs::exists(path)) return longest_for_tokenizer(folder);
  const JsonDocument document(path);
  ConfigFields fields(document.root());
  fields.expect("do_lower_case", false,
                "heed leaves texts to the tokenizer, whose normalizer says what is lowered");
  fields.expect("transformer_task", "feature-extraction", "heed takes the hidden states");
  fields.expect("module_output_name", "token_embeddings", "heed takes the hidden states");
  if (const auto modalities = fields.find("modality_config")) {
    ConfigFields kinds(*modalities);
    ConfigFields text(kinds.at("text"));
    text.expect("method", "forward", "heed takes the hidden states");
    text.expect("method_output_name", "last_hidden_state", "heed takes the hidden states");
    text.check_all_known();
    kinds.check_all_known();
  }
  constexpr std::string_view kArguments = "heed calls the model without arguments";
  for (const char* key : {"model_args", "model_kwargs", "tokenizer_args", "processor_kwargs",
                          "config_args", "config_kwargs", "processing_kwargs"}) {
    fields.expect_nothing(key, kArguments);
  }
  for (const char* key : {"query_length", "document_length", "query_expansion"}) {
    fields.expect_nothing(key, "heed has no queries that are longer or shorter than documents");
  }
  const std::string_view others[] = {"unpad_inputs"};
  fields.ignore(others);
  const auto length = fields.find("max_seq_length");
  fields.check_all_known();
  return length ? length->integer() : longest_for_tokenizer(folder);
}

// A module of modules.json.
struct ListedModule {
  io::JsonPart json;
  std::string kind;  // the name of its class
  fs::path path;     // the folder of its files
};

std::vector<ListedModule> listed_modules(const io::JsonPart& list, const fs::path& folder) {
  std::vector<ListedModule> modules;
  for (const io::JsonPart& item : list.items()) {
    ConfigFields fields(item);
    const std::string type = fields.at("type").string();
    const std::string below = fields.string_or("path", "");
    const std::string_view others[] = {"idx", "name"};
    fields.ignore(others);
    fields.expect_nothing("kwargs", "heed calls modules without arguments");
    fields.check_all_known();
    const fs::path path = fs::path(below).lexically_normal();
    if (path.is_absolute() || (!path.empty() && *path.begin() == "..")) {
      item.fail(fmt::format(": path is \"{}\", expected one below the folder", below));
    }
    const bool is_own = type.starts_with("sentence_transformers.");
    modules.push_back({.json = item,
                       .kind = is_own ? type.substr(type.rfind('.') + 1) : type,
                       .path = below.empty() ? folder : folder / path});
  }
  return modules;
}

void refuse_module(const ListedModule& module, std::string_view expected) {
  module.json.fail(
      fmt::format(": the module is {}, expected {}: heed makes vectors by Transformer, Pooling, "
                  "any number of Dense, and Normalize in this order. Hidden states and heads do "
                  "not depend on it: without "
                  "modules.json and 1_Pooling the folder opens",
                  module.kind, expected));
}

void check_normalize(const fs::path& folder) {
  const fs::path path = folder / "config.json";
  if (!fs::exists(path)) return;
  const JsonDocument document(path);
  ConfigFields fields(document.root());
  constexpr std::string_view kWhy = "heed normalises the vectors of texts";
  fields.expect("module_input_name", "sentence_embedding", kWhy);
  fields.expect("module_output_name", "sentence_embedding", kWhy);
  fields.check_all_known();
}

PooledDense::Activation activation_of(const io::JsonPart& name) {
  const std::string type = name.string();
  const std::string last = type.substr(type.rfind('.') + 1);
  for (const auto& [known, activation] : {std::pair<std::string_view, PooledDense::Activation>{
                                              "Identity", PooledDense::Activation::kIdentity},
                                          {"Tanh", PooledDense::Activation::kTanh},
                                          {"ReLU", PooledDense::Activation::kRelu},
                                          {"GELU", PooledDense::Activation::kGelu}}) {
    if (known == last && type.starts_with("torch.nn.modules.")) return activation;
  }
  name.fail(
      fmt::format(" is \"{}\", expected Identity, Tanh, ReLU or GELU of torch.nn.modules", type));
}

// @param size of the vector before
PooledDense read_dense_module(const fs::path& folder, std::int64_t size) {
  const JsonDocument document(folder / "config.json");
  ConfigFields fields(document.root());
  constexpr std::string_view kWhy = "heed has this module behind pooling";
  fields.expect("in_features", size, "the vector before has this size");
  for (const char* key : {"module_input_name", "module_output_name"}) {
    fields.expect(key, "sentence_embedding", kWhy);
  }
  PooledDense dense{.folder = folder,
                    .in_size = size,
                    .out_size = fields.integer("out_features"),
                    .has_bias = fields.boolean_or("bias", true)};
  if (const auto name = fields.find("activation_function")) dense.activation = activation_of(*name);
  fields.check_all_known();
  constexpr std::int64_t kLargest = std::int64_t{1} << 20;
  if (dense.out_size < 1 || dense.out_size > kLargest) {
    document.root().fail(
        fmt::format(": out_features is {}, expected 1 to {}", dense.out_size, kLargest));
  }
  return dense;
}

void read_pooling_module(const fs::path& folder, std::int64_t hidden_size, Pooling& pooling) {
  const JsonDocument document(folder / "config.json");
  ConfigFields fields(document.root());
  pooling.kinds = read_kinds(fields);
  for (const char* key : {"embedding_dimension", "word_embedding_dimension"}) {
    fields.expect(key, hidden_size, "the transformer's hidden states have this width");
  }
  if (!pooling.prompt.empty()) {
    fields.expect("include_prompt", true, "heed pools the tokens of the default prompt too");
  }
  fields.find("include_prompt");
  fields.check_all_known();
}

}  // namespace

fs::path transformer_folder(const fs::path& folder) {
  if (!fs::exists(folder / "modules.json")) return folder;
  const JsonDocument document(folder / "modules.json");
  const std::vector<ListedModule> modules = listed_modules(document.root(), folder);
  return modules.empty() ? folder : modules.front().path;
}

Pooling read_pooling(const fs::path& folder, std::int64_t hidden_size) {
  Pooling pooling{.max_tokens = read_max_tokens(transformer_folder(folder))};
  if (pooling.max_tokens < 1) {
    throw FormatError(folder.string(), 0,
                      fmt::format("max_seq_length, or model_max_length of tokenizer_config.json, "
                                  "is {}, expected at least 1",
                                  pooling.max_tokens));
  }
  if (!fs::exists(folder / "modules.json")) {
    if (!fs::exists(folder / "1_Pooling")) return pooling;
    throw FormatError((folder / "1_Pooling").string(), 0,
                      "it is there without modules.json, which says what follows the transformer; "
                      "copy that file too, or take 1_Pooling away");
  }
  const JsonDocument document(folder / "modules.json");
  const std::vector<ListedModule> modules = listed_modules(document.root(), folder);
  pooling.prompt = default_prompt(folder);
  std::int64_t size = 0;  // of the vector so far
  for (std::size_t i = 0; i < modules.size(); ++i) {
    const ListedModule& module = modules[i];
    const std::string_view expected = i == 0              ? "Transformer"
                                      : i == 1            ? "Pooling"
                                      : pooling.normalize ? "Normalize"
                                                          : "Dense or Normalize";
    const bool is_dense = i >= 2 && !pooling.normalize && module.kind == "Dense";
    const bool is_normalize = i >= 2 && module.kind == "Normalize";
    if (i < 2 ? module.kind != expected : !is_dense && !is_normalize) {
      refuse_module(module, expected);
    }
    if (i == 1) {
      read_pooling_module(module.path, hidden_size, pooling);
      size = hidden_size * std::ssize(pooling.kinds);
    }
    if (is_dense) {
      pooling.dense.push_back(read_dense_module(module.path, size));
      size = pooling.dense.back().out_size;
    }
    if (is_normalize) {
      check_normalize(module.path);
      pooling.normalize = true;
    }
  }
  if (modules.size() < 2) {
    document.root().fail(fmt::format(" lists {} modules, expected Transformer and Pooling at least",
                                     modules.size()));
  }
  return pooling;
}

}}}  // namespace heed::v0::models
