/// The tensors of a trained model as its files store them: folders of safetensors files, or GGUF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/config.h"
#include "heed/core/shape.h"
#include "heed/core/tensor.h"
#include "heed/io/gguf.h"

/// Trained models: their files, their computation, and text generation.
namespace heed { inline namespace v0 { namespace models {

/// The storage of a tensor's elements. float8_e4m3 has an exponent of 4 bits and no infinities, and
/// float8_e5m2 is the first half of a Float16 (OCP 8-bit floating point, 1.0). The quantised types
/// store blocks of 32 neighbours of a row:
///   Q8_0:       Float16 scale d, 32 int8 q:                     x = d · q
///   Q4_0:       Float16 scale d, 32 nibbles q:                  x = d · (q − 8)
///   Q4_1:       Float16 scale d, Float16 minimum m, 32 nibbles: x = d · q + m
///   Q5_0, Q5_1: the same with five bits:                        x = d · (q − 16), d · q + m
///   IQ4_NL:     Float16 scale d, 32 nibbles q:                  x = d · t[q], t a table
///   MXFP4:      scale d = 2ᵉ⁻¹²⁸, 32 nibbles q:                 x = d · t[q], t twice E2M1's
///   numbers
/// or of 256, whose parts of 16 or 32 have scales s and minimums m of a few bits:
///   Q2_K, Q4_K, Q5_K: Float16 d and e: x = d · s · q − e · m
///   Q3_K, Q6_K:       Float16 d:       x = d · s · (q − 4), d · s · (q − 32)
///   IQ4_XS:           Float16 d:       x = d · s · t[q] with IQ4_NL's table
///   TQ1_0, TQ2_0:     Float16 d:       x = d · (q − 1), q from 0 to 2 (TQ2_0: to 3), without parts
/// Nibble i < 16 of a block of 32 is the low half of byte i, nibble i + 16 its high half.
/// Source: ggml, https://github.com/ggml-org/ggml (ggml-common.h: block_q8_0, block_q4_K, …).
// NOLINTBEGIN(readability-identifier-naming): as ggml calls its types
enum class WeightType {
  kFloat32,
  kFloat16,
  kBFloat16,
  kQ8_0,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIQ4_NL,
  kIQ4_XS,
  kMXFP4,
  kTQ1_0,
  kTQ2_0,
  kFloat8E4M3,
  kFloat8E5M2
};
// NOLINTEND(readability-identifier-naming)

/// The name of a type, for example "float32" or "q4_1".
HEED_API std::string_view to_string(WeightType type);
/// The size of a row of `columns` elements, in bytes. @throws InvalidArgument when a quantised row
/// has a length that is not a multiple of its blocks, or sizes overflow.
HEED_API std::int64_t row_bytes(WeightType type, std::int64_t columns);

/// A tensor of a checkpoint, in the mapped file. Valid as long as the Checkpoint or a copy of it
/// exists.
struct StoredTensor {
  std::string name;
  WeightType type = WeightType::kFloat32;
  Shape shape;                       ///< row-major, the innermost dimension last
  std::span<const std::byte> bytes;  ///< may have any alignment
};

/// A tensor of a checkpoint, of any type.
struct TensorEntry {
  std::string name;
  std::string type;     ///< as the file spells it: "BF16", "Q4_K"
  bool is_read = true;  ///< false if the type is none of WeightType
  std::int64_t num_elements = 0;
  std::int64_t num_bytes = 0;  ///< 0 for a type whose size heed does not know
};

/// A file of a checkpoint, mapped. Valid as long as the Checkpoint or a copy of it exists.
struct CheckpointFile {
  std::string name;  ///< its path
  std::span<const std::byte> bytes;
};

/// The elements as floats. @throws InvalidArgument when the shape does not fit the bytes.
HEED_API Tensor<float> to_float(const StoredTensor& tensor);

/// The tensors of a model. A handle: copies share the mapped files, which stay mapped until the
/// last copy is destroyed. Immutable.
class HEED_API Checkpoint {
 public:
  /// Opens model.safetensors of a folder, or else the shards that its model.safetensors.index.json
  /// names, or a .safetensors or .gguf file. Beside a first part, NAME-00001-of-00003.gguf, it
  /// opens the other parts. Only headers are read. A file must not change while it is mapped: if it
  /// becomes shorter, the system ends a process that reads the missing part.
  /// @throws FormatError naming the file and the byte where GgufFile and read_safetensors() would;
  ///     when an index names a file outside the folder or a tensor that its shard lacks, or lacks
  ///     one that a shard has; for a tensor in two files, and GGUF parts that do not fit together.
  ///     IoError when a file cannot be read, is empty or not a regular file, or the folder has
  ///     neither.
  static Checkpoint open(const std::filesystem::path& path);
  /// The tensors of an open GGUF file. @throws FormatError when it is one of several parts.
  static Checkpoint of(const GgufFile& file);

  /// The names of all tensors, sorted.
  std::vector<std::string> names() const;
  bool contains(std::string_view name) const;
  /// All tensors, sorted by name.
  std::vector<TensorEntry> entries() const;
  /// @throws FormatError naming the checkpoint and the tensor when there is none of this name, and
  /// also its type when it is none of WeightType.
  StoredTensor tensor(std::string_view name) const;
  /// The path, as errors name it.
  const std::string& name() const;
  /// The files with the tensors, without an index.
  std::vector<CheckpointFile> files() const;
  /// The GGUF file with all its parts, if the tensors are from one.
  std::optional<GgufFile> gguf() const;

 private:
  struct Files;
  explicit Checkpoint(std::shared_ptr<const Files> files);
  std::shared_ptr<const Files> files_;
};

}}}  // namespace heed::v0::models
