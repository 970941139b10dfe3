// Access to the keys of a GGUF file. Keys that no reader asks for are refused, so that nothing in a
// file is silently ignored.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "heed/io/gguf.h"

namespace heed { inline namespace v0 { namespace io {

// The keys that begin with a prefix; functions take the rest of the name. Each function throws
// FormatError naming the whole key, its value and what was expected. Asking for a key marks it as
// known.
class GgufKeys {
 public:
  // @param prefix e.g. "llama."; `file` must outlive this object
  GgufKeys(const GgufFile& file, std::string prefix);

  const GgufFile& file() const noexcept { return file_; }
  std::string name_of(std::string_view key) const { return prefix_ + std::string(key); }
  bool has(std::string_view key);

  // Return the value, or `otherwise` if the key is missing.
  std::int64_t integer(std::string_view key, std::int64_t otherwise);
  double number(std::string_view key);
  double number(std::string_view key, double otherwise);
  bool boolean(std::string_view key, bool otherwise);
  const std::string& string(std::string_view key);
  std::string string(std::string_view key, const std::string& otherwise);
  const std::vector<std::int64_t>& integers(std::string_view key);
  const std::vector<double>& numbers(std::string_view key);
  const std::vector<std::string>& strings(std::string_view key);

  // Returns an integer of at least 1.
  std::int64_t size(std::string_view key);
  // Returns an integer of at least 1 for a key that may hold one number per layer, which must all
  // be equal.
  std::int64_t size_in_layers(std::string_view key, std::int64_t num_layers);

  // Throws, with the reason, unless the key is missing or has this value.
  void expect_number(std::string_view key, double expected, std::string_view reason);
  void expect_flag(std::string_view key, bool expected, std::string_view reason);
  // Marks a key as known that changes no result, whatever its value. A key that ends in a dot marks
  // all keys with this beginning.
  void ignore(std::string_view key);
  // Throws at the first key with the prefix that is not known.
  void refuse_others() const;

  [[noreturn]] void fail(std::string_view key, std::string_view expected) const;

 private:
  // Returns the whole name and marks it as known.
  std::string asked(std::string_view key);

  const GgufFile& file_;
  std::string prefix_;
  std::set<std::string, std::less<>> known_;
};

}}}  // namespace heed::v0::io
