// JSON as a tree, for files whose parts say what the others mean. Its depth is bounded, so that
// destroying it needs neither memory nor much of the stack.
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
  double number = 0;              // of an integer too
  std::string text;               // of a string
  std::vector<std::string> keys;  // of an object, in the order of the file; none occurs twice
  std::vector<JsonValue> items;   // of an array or an object
  std::int64_t byte = 0;          // where the file was read when the value was seen
};

// Throws FormatError, which names `file` and the byte: the text is not JSON, a key occurs twice in
// an object, an integer is beyond 63 bits, or more than 64 arrays and objects are nested.
HEED_API JsonValue parse_json(std::string_view text, const std::string& file);

// A value and its place in a file, which its errors name: "f: at byte 12: model.unk_token is a
// number, expected a string". It refers to the file's name and the value.
class HEED_API JsonPart {
 public:
  JsonPart(const std::string& file, const JsonValue& value, std::string path = "")
      : file_(&file), value_(&value), path_(std::move(path)) {}

  const JsonValue& value() const noexcept { return *value_; }
  const std::string& file() const noexcept { return *file_; }
  bool is(JsonKind kind) const noexcept { return value_->kind == kind; }

  // These throw FormatError when the value is of another kind.
  const std::string& string() const;
  bool boolean() const;
  std::int64_t integer() const;
  double number() const;                // of an integer too
  std::vector<JsonPart> items() const;  // of an array

  // A member of an object; nothing when it is missing or null.
  std::optional<JsonPart> find(std::string_view key) const;
  // Throws FormatError when it is missing or null.
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
