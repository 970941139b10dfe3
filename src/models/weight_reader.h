// Reads weights from a checkpoint by role, under the names that they have there, and knows which
// were not read.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/models/checkpoint.h"
#include "heed/models/config.h"
#include "models/graph.h"

namespace heed { inline namespace v0 { namespace models {

// A tensor on which no result depends although files have it. The name is the part after the
// prefix. It may begin or end with '*', which matches anything.
struct HarmlessTensor {
  std::string_view name;
  std::string_view reason;
};

// The names of weights without ".weight" and ".bias". Names of a layer's weights follow layer(i);
// empty if the family has no such part.
struct PartNormNames {
  std::string_view before = {};
  std::string_view after = {};
  std::string_view after_sum = {};
};

struct WeightNames {
  // An optional prefix of each name: models saved with a head have the name of their base there.
  std::string_view prefix;
  std::string_view tokens;
  std::string_view positions;
  std::string_view token_types;
  std::string_view position_bias = {};  // [buckets, heads]
  std::string_view embedding_norm;
  std::string_view embedding_projection = {};
  std::string_view final_norm;
  std::string_view head;            // without the prefix
  std::string_view head_bias = {};  // [1, vocab_size], without the prefix; may be missing
  std::string_view layer;
  PartNormNames attention_norms;
  std::string_view query, key, value;
  std::string_view fused;  // the rows of query, key and value in one matrix
  // The rows of `fused`, if true: for each key head those of its queries, its key and its value;
  // otherwise all of query, then of key, then of value.
  bool is_fused_by_key = false;
  std::string_view query_norm = {};
  std::string_view key_norm = {};
  std::string_view out;
  // Of attention to the encoder's output.
  PartNormNames cross_norms = {};
  std::string_view cross_query = {}, cross_key = {}, cross_value = {}, cross_out = {};
  PartNormNames mlp_norms;
  std::string_view gate, up, down;
  // Of experts: the matrix of scores; the part before an expert's number, or empty if the matrices
  // of all experts are one tensor; and the names behind.
  std::string_view router = {};
  std::string_view experts = {};
  std::string_view expert_gate = {}, expert_up = {}, expert_down = {};
  bool is_gate_in_up = false;  // true if `up` has the rows of the gate before its own
  bool is_transposed = false;  // true if matrices of layers are stored as [columns, rows]
  float norm_offset = 0;       // added to the weights of norms
  std::span<const HarmlessTensor> harmless = {};
};

// A row of a table of names.
struct FamilyNames {
  Family family;
  WeightNames names;
  std::optional<PartOrder> part_order = std::nullopt;  // if the names are those of this order only
  std::optional<bool> is_encoder = std::nullopt;       // of an encoder-decoder, the half
};
// The first row for a model, which must exist.
const WeightNames& names_of(std::span<const FamilyNames> families, const ModelConfig& config);

const WeightNames& names_in_folder(const ModelConfig& config);
const WeightNames& names_in_gguf(const ModelConfig& config);

// Finds weights by name, checks their shapes and records what was read. Its functions throw
// FormatError naming a tensor that is missing or has another shape.
class WeightReader {
 public:
  enum class Reads {
    kWeights,
    kSizes,  // checks tensors only: matrices are without elements, vectors are 0
  };
  // Checkpoint and names must outlive the reader.
  WeightReader(const Checkpoint& checkpoint, const WeightNames& names,
               Reads reads = Reads::kWeights);

  std::string of_model(std::string_view name) const;
  std::string of_layer(std::int64_t layer, std::string_view name) const;
  bool contains(std::string_view name) const;

  WeightMatrix matrix(const std::string& name, std::int64_t rows, std::int64_t columns);
  // The matrices of a tensor [count, rows, columns].
  std::vector<WeightMatrix> matrices(const std::string& name, std::int64_t count, std::int64_t rows,
                                     std::int64_t columns);
  // A matrix of a layer, which the family may store transposed, and its bias.
  Projection projection(const std::string& name, std::int64_t rows, std::int64_t columns,
                        bool has_bias);
  // The elements of a tensor [1, size] whose name is not followed by ".weight"; 0 if it is
  // missing.
  Tensor<float> row_or_zeros(const std::string& name, std::int64_t size);
  // A matrix [rows, columns] as [columns, rows].
  Tensor<float> transposed(const std::string& name, std::int64_t rows, std::int64_t columns);
  Tensor<float> bias(const std::string& name, std::int64_t size) {
    return vector(name + ".bias", size);
  }
  Norm norm(const std::string& name, std::int64_t size, bool has_bias);
  // The norms of `count` heads, with weights [count, size] in one tensor, or [size] in each of
  // "name.norms.0" and so on.
  Norm norms_of_heads(const std::string& name, std::int64_t count, std::int64_t size);

  // Throws FormatError naming a tensor that was not read and is not known to be harmless: a model
  // that uses it would compute something else.
  void check_all_read(const ModelConfig& config) const;
  // Counts tensors that another reader read as read.
  void add_read(const std::vector<std::string>& names) {
    read_.insert(read_.end(), names.begin(), names.end());
  }
  // The names of the tensors that were read, in this order.
  const std::vector<std::string>& read() const noexcept { return read_; }

 private:
  StoredTensor taken(const std::string& name, const Shape& expected);
  Tensor<float> vector(const std::string& name, std::int64_t size);
  bool is_harmless(std::string_view name) const;

  const Checkpoint& checkpoint_;
  const WeightNames& names_;
  Reads reads_;
  std::string_view prefix_;
  std::vector<std::string> read_;
};

}}}  // namespace heed::v0::models
