// A configuration in which every member must be accounted for.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "io/json_value.h"

namespace heed { inline namespace v0 { namespace models {

// An object of a JSON file, and a record of the members that were read. Except for has(), a member
// that is null counts as missing. All functions throw FormatError naming the file and the member.
class ConfigFields {
 public:
  explicit ConfigFields(io::JsonPart object);

  const io::JsonPart& json() const noexcept { return object_; }
  const std::string& file() const noexcept { return object_.file(); }

  // True if the member exists, even if it is null. This does not count as reading it.
  bool has(std::string_view key) const;

  std::optional<io::JsonPart> find(std::string_view key);
  io::JsonPart at(std::string_view key);
  std::int64_t integer(std::string_view key) { return at(key).integer(); }
  double number(std::string_view key) { return at(key).number(); }
  bool boolean_or(std::string_view key, bool otherwise);
  std::int64_t integer_or(std::string_view key, std::int64_t otherwise);
  double number_or(std::string_view key, double otherwise);
  std::string string_or(std::string_view key, std::string_view otherwise);

  // Requires a value, for members that heed supports with one value only. A missing member is
  // accepted.
  // @param why the reason to refuse other values: "heed has no decoders of BERT"
  void expect(std::string_view key, bool value, std::string_view why);
  void expect(std::string_view key, std::int64_t value, std::string_view why);
  void expect(std::string_view key, const char* value, std::string_view why);
  // Requires a member that is missing, null, false, 0, "", [] or {}.
  void expect_nothing(std::string_view key, std::string_view why);

  // Accepts members that no result depends on.
  void ignore(std::span<const std::string_view> keys);
  // Refuses members that were not read: they may change the result.
  void check_all_known() const;

 private:
  [[noreturn]] static void refuse(const io::JsonPart& found, std::string_view expected,
                                  std::string_view why);

  io::JsonPart object_;
  std::set<std::string, std::less<>> known_;
};

}}}  // namespace heed::v0::models
