// GGUF files in memory, valid and invalid.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace heed::testing_support {

// Returns the bytes of a number, little-endian.
template <class T>
std::string raw(T number) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &number, sizeof(T));
  return bytes;
}

// GGUF's codes of value types.
enum GgufType : std::uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kText,
  kArray,
  kU64,
  kI64,
  kF64
};

inline std::string gguf_text(std::string_view text) {
  return raw<std::uint64_t>(text.size()) + std::string(text);
}

inline std::string gguf_array(std::uint32_t type, std::uint64_t count, const std::string& values) {
  return raw(type) + raw(count) + values;
}

// Collects keys and tensors. Counts and offsets in the header can be set independently of the
// contents.
class GgufBuilder {
 public:
  std::uint32_t version = 3;
  std::uint64_t alignment = 32;  // of the file, whether or not a key gives it

  GgufBuilder& add(std::string_view key, std::uint32_t type, const std::string& value) {
    keys_ += gguf_text(key) + raw(type) + value;
    ++num_keys_;
    return *this;
  }

  // `dims` are in ggml's order: the innermost first.
  GgufBuilder& add_tensor(std::string_view name, const std::vector<std::uint64_t>& dims,
                          std::uint32_t type, const std::string& bytes) {
    data_.resize((data_.size() + alignment - 1) / alignment * alignment);
    add_tensor_at(name, dims, type, data_.size());
    data_ += bytes;
    return *this;
  }

  // Adds a tensor to the header only.
  GgufBuilder& add_tensor_at(std::string_view name, const std::vector<std::uint64_t>& dims,
                             std::uint32_t type, std::uint64_t offset) {
    tensors_ += gguf_text(name) + raw(static_cast<std::uint32_t>(dims.size()));
    for (const std::uint64_t extent : dims) tensors_ += raw(extent);
    tensors_ += raw(type) + raw(offset);
    ++num_tensors_;
    return *this;
  }

  std::string build() const { return build(num_tensors_, num_keys_); }
  std::string build(std::uint64_t num_tensors, std::uint64_t num_keys) const {
    std::string file = "GGUF" + raw(version) + raw(num_tensors) + raw(num_keys) + keys_ + tensors_;
    if (data_.empty()) return file;
    file.resize((file.size() + alignment - 1) / alignment * alignment);
    return file + data_;
  }

 private:
  std::string keys_, tensors_, data_;
  std::uint64_t num_keys_ = 0;
  std::uint64_t num_tensors_ = 0;
};

}  // namespace heed::testing_support
