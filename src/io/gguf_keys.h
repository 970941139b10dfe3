// The keys of a GGUF file as a reader asks for them: what nobody asked for is refused, so that no
// file means something that is passed over.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "heed/io/gguf.h"

namespace heed { inline namespace v0 { namespace io {

// The keys that begin with a prefix, called by the rest. Each function throws FormatError naming
// the whole key, its value and what was expected. A key that was asked for is known from then on.
class GgufKeys {
 public:
  // @param prefix "llama."; `file` must outlive the keys
  GgufKeys(const GgufFile& file, std::string prefix);

  const GgufFile& file() const noexcept { return file_; }
  std::string name_of(std::string_view key) const { return prefix_ + std::string(key); }
  bool has(std::string_view key);

  // Values, or `otherwise` where the key is missing.
  std::int64_t integer(std::string_view key, std::int64_t otherwise);
  double number(std::string_view key);
  double number(std::string_view key, double otherwise);
  bool boolean(std::string_view key, bool otherwise);
  const std::string& string(std::string_view key);
  std::string string(std::string_view key, const std::string& otherwise);
  const std::vector<std::int64_t>& integers(std::string_view key);
  const std::vector<double>& numbers(std::string_view key);
  const std::vector<std::string>& strings(std::string_view key);

  // An integer of at least 1.
  std::int64_t size(std::string_view key);
  // The same of a key that may have one number for each layer: all of them must be one.
  std::int64_t size_in_layers(std::string_view key, std::int64_t num_layers);

  // Fails, with the reason, unless the key is missing or has this value.
  void expect_number(std::string_view key, double expected, std::string_view reason);
  void expect_flag(std::string_view key, bool expected, std::string_view reason);
  // A key that changes no result, whatever its value is; one that ends in a dot: all that begin so.
  void ignore(std::string_view key);
  // Fails at the first key with the prefix that is not known.
  void refuse_others() const;

  [[noreturn]] void fail(std::string_view key, std::string_view expected) const;

 private:
  // The whole name, which is known from now on.
  std::string asked(std::string_view key);

  const GgufFile& file_;
  std::string prefix_;
  std::set<std::string, std::less<>> known_;
};

}}}  // namespace heed::v0::io
