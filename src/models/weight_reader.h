// Reads weights from a checkpoint by role, and knows which were not read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "heed/models/checkpoint.h"
#include "heed/models/config.h"
#include "models/parts.h"
#include "models/weight_names.h"

namespace heed { inline namespace v0 { namespace models {

// Finds weights by name, checks their shapes and records what was read. Its functions throw
// FormatError naming a tensor that is missing or has another shape.
class WeightReader {
 public:
  // Both arguments must outlive the reader.
  WeightReader(const Checkpoint& checkpoint, const WeightNames& names);

  std::string of_model(std::string_view name) const;
  std::string of_layer(std::int64_t layer, std::string_view name) const;
  bool contains(std::string_view name) const;

  WeightMatrix matrix(const std::string& name, std::int64_t rows, std::int64_t columns);
  // A matrix of a layer, which the family may store transposed, and its bias.
  Projection projection(const std::string& name, std::int64_t rows, std::int64_t columns,
                        bool has_bias);
  Norm norm(const std::string& name, std::int64_t size, bool has_bias);

  // Throws FormatError naming a tensor that was not read and is not known to be harmless: a model
  // that uses it would compute something else.
  void check_all_read(const ModelConfig& config) const;
  // The names of the tensors that were read, in this order.
  const std::vector<std::string>& read() const noexcept { return read_; }

 private:
  StoredTensor taken(const std::string& name, const Shape& expected);
  Tensor<float> vector(const std::string& name, std::int64_t size);
  bool is_harmless(std::string_view name) const;

  const Checkpoint& checkpoint_;
  const WeightNames& names_;
  std::string_view prefix_;
  std::vector<std::string> read_;
};

}}}  // namespace heed::v0::models
