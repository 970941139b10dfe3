/// GGUF files: a model's tensors, often quantised, and its metadata, in one file.
///
/// Versions 2 and 3, little-endian. A file is refused when a length or count is more than its bytes
/// can hold, a key or a tensor's name is empty or occurs twice, text is not UTF-8, a bool is
/// neither 0 nor 1, an array holds arrays, or a tensor has no dimension or more than 4, rows that
/// do not fill their type's blocks, or bytes that are unaligned, shared with another tensor or
/// outside the file.
/// Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "heed/core/config.h"
#include "heed/core/shape.h"

namespace heed { inline namespace v0 {

/// A value of a GGUF file's metadata: integers of every width as std::int64_t (an unsigned one
/// above 2⁶³ − 1 is refused), numbers of both widths as double, arrays of one kind.
using GgufValue =
    std::variant<bool, std::int64_t, double, std::string, std::vector<bool>,
                 std::vector<std::int64_t>, std::vector<double>, std::vector<std::string>>;

/// A tensor of a GGUF file.
struct GgufTensor {
  std::uint32_t type = 0;  ///< ggml's number of the type: 0 F32, 1 F16, 2 Q4_0, …
  Shape shape;             ///< row-major: ggml's dimensions in reverse
  /// The elements in the file; empty for a type whose size heed does not know.
  std::span<const std::byte> bytes;
  std::int64_t offset = 0;  ///< of the tensor's first byte in its file
  std::size_t part = 0;     ///< the index of its file in parts()
};

/// A file of which a GGUF file consists.
struct GgufPart {
  std::string name;
  std::span<const std::byte> bytes;
};

/// A GGUF file, mapped, with all its parts. A handle: copies share the mapping. Immutable.
class HEED_API GgufFile {
 public:
  /// Maps the file and reads its header, which takes at most about ten times its size in memory. Of
  /// a file that llama.cpp's gguf-split divided it takes the first part, NAME-00001-of-00003.gguf,
  /// and finds the others beside it.
  /// @throws FormatError naming the file, the byte and the problem, also when parts do not fit
  ///     together; IoError when a file cannot be read, is empty or not a regular file.
  static GgufFile open(const std::filesystem::path& path);
  /// Opens one file, also if it is one of several parts.
  static GgufFile open_alone(const std::filesystem::path& path);
  /// open() of the bytes of a file, which must outlive the result. `name` is the file's name in
  /// errors.
  static GgufFile parse(std::span<const std::byte> bytes, const std::string& name);

  const std::string& name() const noexcept;
  /// The whole file; of several parts the first.
  std::span<const std::byte> bytes() const noexcept;
  /// All files, this one first.
  std::vector<GgufPart> parts() const;
  /// That of the first part.
  const std::map<std::string, GgufValue, std::less<>>& metadata() const noexcept;
  /// Those of all parts.
  const std::map<std::string, GgufTensor, std::less<>>& tensors() const noexcept;

  /// The value of a key; number() accepts an integer. @throws FormatError naming the file and the
  /// key when it is missing or of another kind.
  bool boolean(std::string_view key) const;
  std::int64_t integer(std::string_view key) const;
  double number(std::string_view key) const;
  const std::string& string(std::string_view key) const;
  const std::vector<std::int64_t>& integers(std::string_view key) const;
  const std::vector<double>& numbers(std::string_view key) const;
  const std::vector<std::string>& strings(std::string_view key) const;
  bool contains(std::string_view key) const noexcept;

 private:
  struct Contents;
  explicit GgufFile(std::shared_ptr<const Contents> contents);
  std::shared_ptr<const Contents> contents_;
};

}}  // namespace heed::v0
