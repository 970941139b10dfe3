// JSON as a tree, for files in which one part gives another its meaning. The depth is bounded, so
// that destroying a tree needs neither memory nor much stack.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/config.h"

namespace heed { inline namespace v0 { namespace io {

enum class JsonKind { kNull, kBoolean, kInteger, kNumber, kString, kArray, kObject };

struct JsonValue {
  JsonKind kind = JsonKind::kNull;
  bool boolean = false;
  std::int64_t integer = 0;
  double number = 0;              // also of an integer
  std::string text;               // of a string
  std::vector<std::string> keys;  // of an object, in the order of the file; no key occurs twice
  std::vector<JsonValue> items;   // of an array or an object
  std::int64_t byte = 0;          // the parser's position in the file when it met the value
};

// Throws FormatError, which names `file` and the byte, if the text is not JSON, a key occurs twice
// in an object, an integer is beyond 63 bits, or more than 64 arrays and objects are nested.
HEED_API JsonValue parse_json(std::string_view text, const std::string& file);

// A value and its place in a file, for errors like "f: at byte 12: model.unk_token is a number,
// expected a string". It refers to the file's name and the value, which must outlive it.
class HEED_API JsonPart {
 public:
  JsonPart(const std::string& file, const JsonValue& value, std::string path = "")
      : file_(&file), value_(&value), path_(std::move(path)) {}

  const JsonValue& value() const noexcept { return *value_; }
  const std::string& file() const noexcept { return *file_; }
  bool is(JsonKind kind) const noexcept { return value_->kind == kind; }

  // Each of these throws FormatError if the value is of another kind.
  const std::string& string() const;
  bool boolean() const;
  std::int64_t integer() const;
  double number() const;                // also of an integer
  std::vector<JsonPart> items() const;  // of an array

  // A member of an object; nothing if it is missing or null.
  std::optional<JsonPart> find(std::string_view key) const;
  // A member of an object. Throws FormatError if it is missing or null.
  JsonPart at(std::string_view key) const;
  bool boolean_or(std::string_view key, bool otherwise) const;
  std::int64_t integer_or(std::string_view key, std::int64_t otherwise) const;
  double number_or(std::string_view key, double otherwise) const;
  std::string string_or(std::string_view key, std::string_view otherwise) const;

  [[noreturn]] void fail(std::string_view problem) const;

 private:
  const JsonValue& checked(JsonKind kind) const;
  std::string path_to(std::string_view key) const;

  const std::string* file_;
  const JsonValue* value_;
  std::string path_;
};

}}}  // namespace heed::v0::io
