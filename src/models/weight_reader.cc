#include "models/weight_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/printable.h"
#include "heed/core/error.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

// Matches a name with a pattern: a name, "*end" or "begin*".
bool fits_pattern(std::string_view pattern, std::string_view name) {
  if (pattern.starts_with('*')) return name.ends_with(pattern.substr(1));
  if (pattern.ends_with('*')) return name.starts_with(pattern.substr(0, pattern.size() - 1));
  return name == pattern;
}

}  // namespace

const WeightNames& names_of(std::span<const FamilyNames> families, const ModelConfig& config) {
  const auto found = std::find_if(families.begin(), families.end(), [&](const FamilyNames& row) {
    return row.family == config.family &&
           row.part_order.value_or(config.part_order) == config.part_order &&
           row.is_encoder.value_or(config.sees_later_tokens) == config.sees_later_tokens;
  });
  return found->names;
}

WeightReader::WeightReader(const Checkpoint& checkpoint, const WeightNames& names, Reads reads)
    : checkpoint_(checkpoint), names_(names), reads_(reads) {
  if (!checkpoint.contains(fmt::format("{}.weight", names.tokens))) prefix_ = names.prefix;
}

std::string WeightReader::of_model(std::string_view name) const {
  return fmt::format("{}{}", prefix_, name);
}

std::string WeightReader::of_layer(std::int64_t layer, std::string_view name) const {
  return fmt::format("{}{}{}.{}", prefix_, names_.layer, layer, name);
}

bool WeightReader::contains(std::string_view name) const {
  return checkpoint_.contains(fmt::format("{}.weight", name));
}

WeightMatrix WeightReader::matrix(const std::string& name, std::int64_t rows,
                                  std::int64_t columns) {
  const StoredTensor stored = taken(name + ".weight", {rows, columns});
  if (reads_ == Reads::kSizes) return WeightMatrix::without_elements(rows, columns);
  return {checkpoint_, stored};
}

std::vector<WeightMatrix> WeightReader::matrices(const std::string& name, std::int64_t count,
                                                 std::int64_t rows, std::int64_t columns) {
  const StoredTensor all = taken(name + ".weight", {count, rows, columns});
  const std::size_t bytes = all.bytes.size() / static_cast<std::size_t>(count);
  std::vector<WeightMatrix> matrices;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    if (reads_ == Reads::kSizes) {
      matrices.push_back(WeightMatrix::without_elements(rows, columns));
      continue;
    }
    StoredTensor one = all;
    one.shape = {rows, columns};
    one.bytes = all.bytes.subspan(i * bytes, bytes);
    matrices.emplace_back(checkpoint_, one);
  }
  return matrices;
}

Projection WeightReader::projection(const std::string& name, std::int64_t rows,
                                    std::int64_t columns, bool has_bias) {
  Projection projection;
  if (names_.is_transposed) {
    projection.weight = WeightMatrix(transposed(name, columns, rows));
  } else {
    projection.weight = matrix(name, rows, columns);
  }
  if (has_bias) projection.bias = vector(name + ".bias", rows);
  return projection;
}

Tensor<float> WeightReader::transposed(const std::string& name, std::int64_t rows,
                                       std::int64_t columns) {
  const StoredTensor stored = taken(name + ".weight", {rows, columns});
  if (reads_ == Reads::kSizes) return Tensor<float>({columns, rows});
  return to_tensor(FloatView(to_float(stored)).permute({1, 0}));
}

Norm WeightReader::norm(const std::string& name, std::int64_t size, bool has_bias) {
  // BERT's first checkpoints use the names of TensorFlow.
  const bool is_old = checkpoint_.contains(name + ".gamma");
  Norm norm{.weight = vector(name + (is_old ? ".gamma" : ".weight"), size), .bias = {}};
  if (names_.norm_offset != 0) {
    for (float& weight : norm.weight.elements()) weight += names_.norm_offset;
  }
  if (has_bias) norm.bias = vector(name + (is_old ? ".beta" : ".bias"), size);
  return norm;
}

Tensor<float> WeightReader::row_or_zeros(const std::string& name, std::int64_t size) {
  if (!checkpoint_.contains(name)) return Tensor<float>({size});
  const StoredTensor stored = taken(name, {1, size});
  return reads_ == Reads::kSizes ? Tensor<float>({size}) : to_float(stored).reshaped({size});
}

Norm WeightReader::norms_of_heads(const std::string& name, std::int64_t count, std::int64_t size) {
  if (contains(name))
    return {.weight = to_float(taken(name + ".weight", {count, size})), .bias = {}};
  auto weights = Tensor<float>::uninitialized({count, size});
  for (std::int64_t head = 0; head < count; ++head) {
    const Tensor<float> weight = vector(fmt::format("{}.norms.{}.weight", name, head), size);
    std::copy_n(weight.data(), size, weights.data() + head * size);
  }
  return {.weight = std::move(weights), .bias = {}};
}

StoredTensor WeightReader::taken(const std::string& name, const Shape& expected) {
  StoredTensor stored = checkpoint_.tensor(name);
  if (stored.shape != expected) {
    throw FormatError(checkpoint_.name(), 0,
                      fmt::format("tensor {} has shape {}, expected {}", stored.name,
                                  to_string(stored.shape), to_string(expected)));
  }
  read_.push_back(name);
  return stored;
}

Tensor<float> WeightReader::vector(const std::string& name, std::int64_t size) {
  const StoredTensor stored = taken(name, {size});
  return reads_ == Reads::kSizes ? Tensor<float>({size}) : to_float(stored);
}

bool WeightReader::is_harmless(std::string_view name) const {
  if (!prefix_.empty() && name.starts_with(prefix_)) name.remove_prefix(prefix_.size());
  return std::any_of(names_.harmless.begin(), names_.harmless.end(),
                     [&](const HarmlessTensor& tensor) { return fits_pattern(tensor.name, name); });
}

void WeightReader::check_all_read(const ModelConfig& config) const {
  const std::set<std::string_view> read(read_.begin(), read_.end());
  std::string first;
  std::int64_t others = -1;
  for (const std::string& name : checkpoint_.names()) {
    if (read.contains(name) || is_harmless(name)) continue;
    if (others++ < 0) first = name;
  }
  if (others < 0) return;
  throw FormatError(
      checkpoint_.name(), 0,
      fmt::format(
          "tensor '{}'{} belongs to no part of a {} model of {} layers as its configuration "
          "describes it; heed does not know what it is for. Where it changes nothing, take "
          "it out of the file",
          io::printable(first), others > 0 ? fmt::format(", as {} others,", others) : "",
          config.architecture, config.num_layers));
}

}}}  // namespace heed::v0::models
