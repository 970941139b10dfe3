// The keys and values of `heed bench decode`. For long sequences there are so many copies that
// together they exceed the processor's last cache.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/attention/kv_storage.h"

namespace heed::cli {

struct DecodeCase {
  std::string storage = "float32";  // one of kDecodeStorages
  std::int64_t batch = 1;
  std::int64_t heads = 8;
  std::int64_t kv_heads = 8;
  std::int64_t kv_seq = 4096;
  std::int64_t head_dim = 64;
  std::int64_t page = 0;  // positions per page; 0 for a tensor
  int threads = 1;
  std::int64_t shared_prefix = 0;  // keys that all sequences share on the same pages
};

inline const std::vector<std::string> kDecodeStorages = [] {
  std::vector<std::string> names;
  for (const KvStorage storage : kKvStorages) names.emplace_back(to_string(storage));
  return names;
}();
// Those that tensors have too.
inline constexpr std::array<std::string_view, 3> kTensorStorages{"float32", "float16", "bfloat16"};

// The interface of a measured cache; each kind of storage implements it in its own file.
class DecodeCache {
 public:
  using Parts = std::vector<std::span<const std::byte>>;

  DecodeCache() = default;
  DecodeCache(const DecodeCache&) = delete;
  DecodeCache& operator=(const DecodeCache&) = delete;
  virtual ~DecodeCache() = default;

  // The bytes of the keys and values of one copy.
  virtual std::int64_t bytes() const = 0;
  // Computes attention of one query per head on the next copy.
  virtual void attend() = 0;
  // Returns the memory of the next copy, for a measurement that only reads it.
  virtual Parts next_parts() = 0;
};

std::unique_ptr<DecodeCache> make_decode_cache(const DecodeCase& one);

// Makes a paged cache with so many copies that they have `cold_bytes` together.
std::unique_ptr<DecodeCache> make_paged_cache(const DecodeCase& one, std::int64_t cold_bytes);

}  // namespace heed::cli
