// Reads the weights of a transformer by their names.
#include "models/read_weights.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "heed/attention/rotary_frequencies.h"
#include "heed/core/elementary.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

// Rows begin ≤ i < end of a projection.
Projection sliced(const Projection& whole, std::int64_t begin, std::int64_t end) {
  Projection part{.weight = whole.weight.slice_rows(begin, end), .bias = {}};
  if (!whole.bias.view().empty()) {
    part.bias = to_tensor(whole.bias.view().slice(0, begin, end));
  }
  return part;
}

// The rows of `size` heads of each group, from head `first` of the group on, in a projection whose
// groups have `heads` heads each.
Projection of_groups(const Projection& whole, const ModelConfig& config, std::int64_t heads,
                     std::int64_t first, std::int64_t size) {
  const std::int64_t dim = config.head_dim;
  const std::int64_t groups = config.num_kv_heads;
  if (groups == 1) return sliced(whole, first * dim, (first + size) * dim);
  Projection part{.weight = whole.weight.copy_rows(first * dim, heads * dim, groups, size * dim),
                  .bias = {}};
  if (!whole.bias.view().empty()) {
    const FloatView bias = whole.bias.view().reshape({groups, heads * dim});
    part.bias =
        to_tensor(bias.slice(1, first * dim, (first + size) * dim)).reshaped({groups * size * dim});
  }
  return part;
}

void divide(const Projection& fused, const WeightNames& names, const ModelConfig& config,
            TransformerLayer& layer) {
  if (names.is_fused_by_key) {
    const std::int64_t queries = config.num_heads / config.num_kv_heads;
    layer.query = of_groups(fused, config, queries + 2, 0, queries);
    layer.key = of_groups(fused, config, queries + 2, queries, 1);
    layer.value = of_groups(fused, config, queries + 2, queries + 1, 1);
    return;
  }
  const std::int64_t width = config.num_heads * config.head_dim;
  const std::int64_t kv_width = config.num_kv_heads * config.head_dim;
  layer.query = sliced(fused, 0, width);
  layer.key = sliced(fused, width, width + kv_width);
  layer.value = sliced(fused, width + kv_width, width + 2 * kv_width);
}

Norm read_head_norm(WeightReader& reader, const std::string& name, const ModelConfig& config,
                    std::int64_t heads) {
  switch (config.head_norms) {
    case HeadNorms::kNone:
      break;
    case HeadNorms::kShared:
      return reader.norm(name, config.head_dim, false);
    case HeadNorms::kOwn:
      return reader.norms_of_heads(name, heads, config.head_dim);
    case HeadNorms::kAllHeads:
      return reader.norm(name, heads * config.head_dim, false);
  }
  return {};
}

void read_attention(WeightReader& reader, const WeightNames& names, std::int64_t index,
                    const ModelConfig& config, TransformerLayer& layer) {
  const std::int64_t width = config.num_heads * config.head_dim;
  const std::int64_t kv_width = config.num_kv_heads * config.head_dim;
  const auto read = [&](std::string_view name, std::int64_t rows) {
    return reader.projection(reader.of_layer(index, name), rows, config.hidden_size,
                             config.biases.inputs);
  };
  // Some files of a family have one matrix, some three.
  const bool is_fused =
      !names.fused.empty() &&
      (names.query.empty() || reader.contains(reader.of_layer(index, names.fused)));
  if (!is_fused) {
    layer.query = read(names.query, width);
    layer.key = read(names.key, kv_width);
    layer.value = read(names.value, kv_width);
  } else {
    divide(read(names.fused, width + 2 * kv_width), names, config, layer);
  }
  layer.out = reader.projection(reader.of_layer(index, names.out), config.hidden_size, width,
                                config.biases.output);
  layer.query_norm =
      read_head_norm(reader, reader.of_layer(index, names.query_norm), config, config.num_heads);
  layer.key_norm =
      read_head_norm(reader, reader.of_layer(index, names.key_norm), config, config.num_kv_heads);
}

void read_cross_attention(WeightReader& reader, const WeightNames& names, std::int64_t index,
                          const ModelConfig& config, TransformerLayer& layer) {
  if (!config.encoder) return;
  const std::int64_t hidden = config.hidden_size;
  const std::int64_t width = config.num_heads * config.head_dim;
  const auto read = [&](std::string_view name) {
    return reader.projection(reader.of_layer(index, name), width, hidden, config.biases.inputs);
  };
  layer.cross_query = read(names.cross_query);
  layer.cross_key = read(names.cross_key);
  layer.cross_value = read(names.cross_value);
  layer.cross_out = reader.projection(reader.of_layer(index, names.cross_out), hidden, width,
                                      config.biases.output);
}

void read_feed_forward(WeightReader& reader, const WeightNames& names, std::int64_t index,
                       const ModelConfig& config, FeedForward& mlp) {
  const std::int64_t width = config.intermediate_size;
  const auto read = [&](std::string_view name, std::int64_t rows, std::int64_t columns) {
    return reader.projection(reader.of_layer(index, name), rows, columns,
                             config.biases.feed_forward);
  };
  if (names.is_gate_in_up) {
    const Projection both = read(names.up, 2 * width, config.hidden_size);
    mlp.gate = sliced(both, 0, width);
    mlp.up = sliced(both, width, 2 * width);
  } else {
    if (!names.gate.empty()) mlp.gate = read(names.gate, width, config.hidden_size);
    mlp.up = read(names.up, width, config.hidden_size);
  }
  mlp.down = read(names.down, config.hidden_size, width);
}

// The matrices of all experts, of one kind.
std::vector<WeightMatrix> read_experts_of(WeightReader& reader, const WeightNames& names,
                                          std::int64_t index, std::string_view name,
                                          const Experts& experts, std::int64_t rows,
                                          std::int64_t columns) {
  if (names.experts.empty()) {
    return reader.matrices(reader.of_layer(index, name), experts.count, rows, columns);
  }
  std::vector<WeightMatrix> matrices;
  for (std::int64_t i = 0; i < experts.count; ++i) {
    const std::string of_expert = fmt::format("{}{}.{}", names.experts, i, name);
    matrices.push_back(reader.matrix(reader.of_layer(index, of_expert), rows, columns));
  }
  return matrices;
}

void read_experts(WeightReader& reader, const WeightNames& names, std::int64_t index,
                  const ModelConfig& config, TransformerLayer& layer) {
  const Experts& experts = *config.experts;
  const std::int64_t hidden = config.hidden_size;
  const std::int64_t width = experts.intermediate_size;
  layer.router.weight = reader.matrix(reader.of_layer(index, names.router), experts.count, hidden);
  const auto read = [&](std::string_view name, std::int64_t rows, std::int64_t columns) {
    return read_experts_of(reader, names, index, name, experts, rows, columns);
  };
  const auto gates = read(names.expert_gate, width, hidden);
  const auto ups = read(names.expert_up, width, hidden);
  const auto downs = read(names.expert_down, hidden, width);
  for (std::size_t i = 0; i < gates.size(); ++i) {
    layer.experts.push_back({.gate = {.weight = gates[i], .bias = {}},
                             .up = {.weight = ups[i], .bias = {}},
                             .down = {.weight = downs[i], .bias = {}}});
  }
}

TransformerLayer read_layer(WeightReader& reader, const WeightNames& names, std::int64_t index,
                            const ModelConfig& config) {
  TransformerLayer layer;
  const auto norm = [&](std::string_view name) {
    if (name.empty()) return Norm{};
    return reader.norm(reader.of_layer(index, name), config.hidden_size, config.biases.norms);
  };
  const auto norms_around = [&](const PartNormNames& part) {
    return PartNorms{
        .before = norm(part.before), .after = norm(part.after), .after_sum = norm(part.after_sum)};
  };
  PartNormNames attention_norms = names.attention_norms;
  if (!config.layers[static_cast<std::size_t>(index)].has_attention_norm) {
    attention_norms.before = {};
  }
  layer.attention_norms = norms_around(attention_norms);
  if (config.part_order != PartOrder::kParallelOneNorm) {
    layer.mlp_norms = norms_around(names.mlp_norms);
  }
  layer.cross_norms = norms_around(names.cross_norms);
  read_attention(reader, names, index, config, layer);
  read_cross_attention(reader, names, index, config, layer);
  if (config.layers[static_cast<std::size_t>(index)].has_experts) {
    read_experts(reader, names, index, config, layer);
  } else {
    read_feed_forward(reader, names, index, config, layer.mlp);
  }
  return layer;
}

// Reads the matrix of the head. If the file has one it is used, whether or not the configuration
// ties it. Models saved without a head have none.
void read_head(WeightReader& reader, const WeightNames& names, Model::Parts& parts) {
  ModelConfig& config = parts.config;
  const std::string name(names.head);
  if (name.empty()) return;
  if (reader.contains(name)) {
    config.has_tied_head = false;
    parts.head.weight = reader.matrix(name, config.vocab_size, config.hidden_size);
  } else if (config.has_tied_head) {
    parts.head.weight = parts.tokens;
  }
  if (parts.head.weight.rows() == 0) return;
  if (config.biases.head) parts.head.bias = reader.bias(name, config.vocab_size);
  if (!names.head_bias.empty()) {
    parts.head.bias = reader.row_or_zeros(std::string(names.head_bias), config.vocab_size);
  }
}

// [max_positions, hidden_size]: sines, then cosines.
Tensor<float> sinusoidal_positions(const ModelConfig& config) {
  const std::int64_t half = config.hidden_size / 2;
  const RotaryFrequencies frequencies = rotary_frequencies(config.hidden_size, 10000);
  auto positions = Tensor<float>::uninitialized({config.max_positions, config.hidden_size});
  for (std::int64_t position = 0; position < config.max_positions; ++position) {
    float* const row = positions.data() + position * config.hidden_size;
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(position) * frequencies.inv_freq.data()[i];
      row[i] = static_cast<float>(elementary::sin(angle));
      row[half + i] = static_cast<float>(elementary::cos(angle));
    }
  }
  return positions;
}

// The embeddings, and what becomes of them before the first layer.
void read_embeddings(WeightReader& reader, const WeightNames& names, Model::Parts& parts) {
  const ModelConfig& config = parts.config;
  const std::int64_t width = config.embedding_size.value_or(config.hidden_size);
  parts.tokens = reader.matrix(reader.of_model(names.tokens), config.vocab_size, width);
  if (!names.positions.empty()) {
    parts.positions =
        reader.matrix(reader.of_model(names.positions), config.num_position_rows(), width);
  }
  if (config.has_sinusoidal_positions) {
    parts.positions = WeightMatrix(sinusoidal_positions(config));
  }
  if (config.num_token_types > 0) {
    parts.token_types =
        reader.matrix(reader.of_model(names.token_types), config.num_token_types, width);
  }
  if (!names.embedding_norm.empty()) {
    parts.embedding_norm =
        reader.norm(reader.of_model(names.embedding_norm), width, config.biases.norms);
  }
  if (config.embedding_size) {
    parts.embedding_projection = reader.projection(reader.of_model(names.embedding_projection),
                                                   config.hidden_size, width, true);
  }
}

}  // namespace

void read_weights(WeightReader& reader, const WeightNames& names, Model::Parts& parts) {
  const ModelConfig& config = parts.config;
  const std::int64_t hidden = config.hidden_size;
  const bool has_biases = config.biases.norms;
  read_embeddings(reader, names, parts);
  if (config.position_buckets) {
    parts.position_bias = reader.transposed(reader.of_model(names.position_bias),
                                            config.position_buckets->count, config.num_heads);
  }
  for (std::int64_t i = 0; i < config.num_layers; ++i) {
    parts.layers.push_back(config.shares_layers && i > 0 ? parts.layers.front()
                                                         : read_layer(reader, names, i, config));
  }
  if (!names.final_norm.empty()) {
    parts.final_norm = reader.norm(reader.of_model(names.final_norm), hidden, has_biases);
  }
  read_head(reader, names, parts);
}

void read_dense(const std::vector<PooledDense>& modules, WeightReader::Reads reads,
                Model::Parts& parts) {
  for (const PooledDense& module : modules) {
    const Checkpoint& checkpoint =
        parts.dense_checkpoints.emplace_back(Checkpoint::open(module.folder));
    WeightNames names{};
    names.tokens = "linear";
    WeightReader reader(checkpoint, names, reads);
    parts.dense.push_back(
        reader.projection("linear", module.out_size, module.in_size, module.has_bias));
    reader.check_all_read(parts.config);
  }
}

}}}  // namespace heed::v0::models
