// From files to the parts of a transformer.
#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "heed/error.h"
#include "heed/models/model.h"
#include "models/parts.h"
#include "models/weight_names.h"

namespace heed::inline v0::models {

namespace {

// Finds weights by their names and checks their shapes.
class WeightReader {
 public:
  WeightReader(const Checkpoint& checkpoint, const WeightNames& names)
      : checkpoint_(checkpoint), names_(names) {
    if (!checkpoint.contains(fmt::format("{}.weight", names.tokens))) prefix_ = names.prefix;
  }

  std::string of_model(std::string_view name) const { return fmt::format("{}{}", prefix_, name); }
  std::string of_layer(std::int64_t layer, std::string_view name) const {
    return fmt::format("{}{}{}.{}", prefix_, names_.layer, layer, name);
  }
  bool contains(const std::string& name) const { return checkpoint_.contains(name + ".weight"); }

  WeightMatrix matrix(const std::string& name, std::int64_t rows, std::int64_t columns) const {
    const StoredTensor stored = checkpoint_.tensor(name + ".weight");
    check(stored, {rows, columns});
    return {checkpoint_, stored};
  }

  // A matrix of a layer, which the family may store transposed.
  Projection projection(const std::string& name, std::int64_t rows, std::int64_t columns) const {
    Projection projection;
    if (names_.is_transposed) {
      const StoredTensor stored = checkpoint_.tensor(name + ".weight");
      check(stored, {columns, rows});
      const Tensor<float> elements = to_float(stored);
      projection.weight = WeightMatrix(to_tensor(elements.view().permute({1, 0})));
    } else {
      projection.weight = matrix(name, rows, columns);
    }
    projection.bias = optional_vector(name + ".bias", rows);
    return projection;
  }

  Norm norm(const std::string& name, std::int64_t size) const {
    // BERT's first checkpoints have the names that TensorFlow gave.
    const bool is_old = checkpoint_.contains(name + ".gamma");
    Norm norm{.weight = vector(name + (is_old ? ".gamma" : ".weight"), size),
              .bias = optional_vector(name + (is_old ? ".beta" : ".bias"), size)};
    return norm;
  }

 private:
  void check(const StoredTensor& stored, const Shape& expected) const {
    if (stored.shape == expected) return;
    throw FormatError(checkpoint_.name(), 0,
                      fmt::format("tensor {} has shape {}, expected {}", stored.name,
                                  to_string(stored.shape), to_string(expected)));
  }
  Tensor<float> vector(const std::string& name, std::int64_t size) const {
    const StoredTensor stored = checkpoint_.tensor(name);
    check(stored, {size});
    return to_float(stored);
  }
  Tensor<float> optional_vector(const std::string& name, std::int64_t size) const {
    return checkpoint_.contains(name) ? vector(name, size) : Tensor<float>();
  }

  const Checkpoint& checkpoint_;
  const WeightNames& names_;
  std::string_view prefix_;
};

// Rows begin ≤ i < end of a projection.
Projection sliced(const Projection& whole, std::int64_t begin, std::int64_t end) {
  Projection part{.weight = whole.weight.slice_rows(begin, end), .bias = {}};
  if (!whole.bias.view().empty()) {
    part.bias = to_tensor(whole.bias.view().slice(0, begin, end));
  }
  return part;
}

void read_attention(const WeightReader& reader, const WeightNames& names, std::int64_t index,
                    const ModelConfig& config, TransformerLayer& layer) {
  const std::int64_t width = config.num_heads * config.head_dim;
  const std::int64_t kv_width = config.num_kv_heads * config.head_dim;
  const auto read = [&](std::string_view name, std::int64_t rows) {
    return reader.projection(reader.of_layer(index, name), rows, config.hidden_size);
  };
  if (names.fused.empty()) {
    layer.query = read(names.query, width);
    layer.key = read(names.key, kv_width);
    layer.value = read(names.value, kv_width);
  } else {
    const Projection fused = read(names.fused, width + 2 * kv_width);
    layer.query = sliced(fused, 0, width);
    layer.key = sliced(fused, width, width + kv_width);
    layer.value = sliced(fused, width + kv_width, width + 2 * kv_width);
  }
  layer.out = reader.projection(reader.of_layer(index, names.out), config.hidden_size, width);
}

TransformerLayer read_layer(const WeightReader& reader, const WeightNames& names,
                            std::int64_t index, const ModelConfig& config) {
  TransformerLayer layer;
  const std::int64_t hidden = config.hidden_size;
  layer.attention_norm = reader.norm(reader.of_layer(index, names.attention_norm), hidden);
  layer.mlp_norm = reader.norm(reader.of_layer(index, names.mlp_norm), hidden);
  read_attention(reader, names, index, config, layer);
  if (!names.gate.empty()) {
    layer.gate =
        reader.projection(reader.of_layer(index, names.gate), config.intermediate_size, hidden);
  }
  layer.up = reader.projection(reader.of_layer(index, names.up), config.intermediate_size, hidden);
  layer.down =
      reader.projection(reader.of_layer(index, names.down), hidden, config.intermediate_size);
  return layer;
}

// The matrix of scores: its own, or that of the tokens. Models saved without a head have none.
void read_head(const WeightReader& reader, const WeightNames& names, Model::Parts& parts) {
  const ModelConfig& config = parts.config;
  const std::string name(names.head);
  if (name.empty()) return;
  if (!config.has_tied_head && !reader.contains(name)) return;
  parts.head.weight = config.has_tied_head
                          ? parts.tokens
                          : reader.matrix(name, config.vocab_size, config.hidden_size);
}

void read_weights(const Checkpoint& checkpoint, const WeightNames& names, Model::Parts& parts) {
  const ModelConfig& config = parts.config;
  const std::int64_t hidden = config.hidden_size;
  const WeightReader reader(checkpoint, names);
  parts.tokens = reader.matrix(reader.of_model(names.tokens), config.vocab_size, hidden);
  if (!names.positions.empty()) {
    parts.positions = reader.matrix(reader.of_model(names.positions), config.max_positions, hidden);
  }
  if (config.num_token_types > 0) {
    parts.token_types =
        reader.matrix(reader.of_model(names.token_types), config.num_token_types, hidden);
  }
  if (!names.embedding_norm.empty()) {
    parts.embedding_norm = reader.norm(reader.of_model(names.embedding_norm), hidden);
  }
  for (std::int64_t i = 0; i < config.num_layers; ++i) {
    parts.layers.push_back(read_layer(reader, names, i, config));
  }
  if (!names.final_norm.empty()) {
    parts.final_norm = reader.norm(reader.of_model(names.final_norm), hidden);
  }
  read_head(reader, names, parts);
}

}  // namespace

Model load(const std::filesystem::path& path) {
  const Checkpoint checkpoint = Checkpoint::open(path);
  const std::optional<GgufFile> gguf = checkpoint.gguf();
  if (!gguf && !std::filesystem::is_directory(path)) {
    throw IoError(
        fmt::format("{}: expected a folder with config.json and model.safetensors, or a GGUF file",
                    path.string()));
  }
  auto parts = std::make_shared<Model::Parts>();
  parts->config = gguf ? read_config(*gguf) : read_config(path);
  parts->tokenizer = text::load_tokenizer(path);
  const Family family = parts->config.family;
  read_weights(checkpoint, gguf ? names_in_gguf(family) : names_in_folder(family), *parts);
  return Model(std::move(parts));
}

}  // namespace heed::inline v0::models
