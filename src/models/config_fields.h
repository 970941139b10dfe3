// A configuration whose every member has to be accounted for.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "io/json_value.h"

namespace heed { inline namespace v0 { namespace models {

// An object of a JSON file and a record of the members that somebody asked for. Members that are
// null are as good as missing, but for has(). All functions throw FormatError naming the file and
// the member.
class ConfigFields {
 public:
  explicit ConfigFields(io::JsonPart object);

  const io::JsonPart& json() const noexcept { return object_; }
  const std::string& file() const noexcept { return object_.file(); }

  // Whether there is such a member, even if it is null. It need not be accounted for by that.
  bool has(std::string_view key) const;

  std::optional<io::JsonPart> find(std::string_view key);
  io::JsonPart at(std::string_view key);
  std::int64_t integer(std::string_view key) { return at(key).integer(); }
  double number(std::string_view key) { return at(key).number(); }
  bool boolean_or(std::string_view key, bool otherwise);
  std::int64_t integer_or(std::string_view key, std::int64_t otherwise);
  double number_or(std::string_view key, double otherwise);
  std::string string_or(std::string_view key, std::string_view otherwise);

  // Members that mean something which heed computes with one value only.
  // @param why what another value asks for: "heed has no decoders of BERT"
  void expect(std::string_view key, bool value, std::string_view why);
  void expect(std::string_view key, std::int64_t value, std::string_view why);
  void expect(std::string_view key, const char* value, std::string_view why);
  // Members that may be missing, null, false, 0, "", [] or {} only.
  void expect_nothing(std::string_view key, std::string_view why);

  // Members that no result depends on.
  void ignore(std::span<const std::string_view> keys);
  // Refuses a member that nobody asked for: it may change the result.
  void check_all_known() const;

 private:
  [[noreturn]] static void refuse(const io::JsonPart& found, std::string_view expected,
                                  std::string_view why);

  io::JsonPart object_;
  std::set<std::string, std::less<>> known_;
};

}}}  // namespace heed::v0::models
