// JSON text, and JSON as a tree.
#include "io/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "core/printable.h"
#include "heed/core/error.h"
#include "io/json_value.h"

namespace heed { inline namespace v0 { namespace io {

bool JsonReader::parse_error(std::size_t byte, const std::string&,
                             const nlohmann::json::exception& error) {
  throw FormatError(file_, static_cast<std::int64_t>(byte), "not valid JSON: " + problem_of(error));
}

void read_json(std::string_view text, JsonReader& reader) {
  nlohmann::json::sax_parse(text, &reader);
}

// Returns the message without its prefix, e.g. of "[json.exception.parse_error.101] parse error at
// line 1, column 2: syntax error …" or "[json.exception.out_of_range.406] number overflow …".
std::string problem_of(const nlohmann::json::exception& error) {
  std::string_view text = error.what();
  text.remove_prefix(std::min(text.find("] ") + 2, text.size()));
  const std::size_t place = text.find(": ");
  if (text.starts_with("parse error at") && place != text.npos) text.remove_prefix(place + 2);
  return printable(text);
}

std::string json_string(std::string_view text, JsonCharacters characters) {
  constexpr int kOneLine = -1;
  return nlohmann::json(text).dump(kOneLine, ' ', characters == JsonCharacters::kAscii);
}

nlohmann::json parse_json(std::string_view text) {
  constexpr bool kThrows = false;
  bool is_too_deep = false;
  const auto keep = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    is_too_deep = is_too_deep || depth > kMaxJsonDepth;
    return !is_too_deep;
  };
  nlohmann::json json = nlohmann::json::parse(text, keep, kThrows);
  if (is_too_deep) return nlohmann::json::value_t::discarded;
  return json;
}

namespace {

constexpr std::size_t kMaxDepth = 64;

class TreeReader : public JsonReader {
 public:
  TreeReader(const std::string& file, const std::int64_t& taken)
      : JsonReader(file), file_(file), taken_(taken) {}

  JsonValue take() { return std::move(root_); }

  bool null() override {
    add(JsonKind::kNull);
    return true;
  }
  bool boolean(bool value) override {
    add(JsonKind::kBoolean).boolean = value;
    return true;
  }
  bool number_integer(number_integer_t value) override {
    JsonValue& added = add(JsonKind::kInteger);
    added.integer = value;
    added.number = static_cast<double>(value);
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max())) {
      fail(fmt::format("the number {} is beyond 63 bits", value));
    }
    return number_integer(static_cast<number_integer_t>(value));
  }
  bool number_float(number_float_t value, const string_t&) override {
    add(JsonKind::kNumber).number = value;
    return true;
  }
  bool string(string_t& value) override {
    add(JsonKind::kString).text = std::move(value);
    return true;
  }
  bool start_object(std::size_t) override { return open(JsonKind::kObject); }
  bool start_array(std::size_t) override { return open(JsonKind::kArray); }
  bool key(string_t& key) override {
    open_.back()->keys.push_back(std::move(key));
    return true;
  }
  bool end_object() override {
    check_keys(open_.back()->keys);
    open_.pop_back();
    return true;
  }
  bool end_array() override {
    open_.pop_back();
    return true;
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    throw FormatError(file_, taken_, problem);
  }

  JsonValue& add(JsonKind kind) {
    JsonValue& added = open_.empty() ? root_ : open_.back()->items.emplace_back();
    added.kind = kind;
    added.byte = taken_;
    return added;
  }

  // Pointers to open values stay valid: the vector of an open value grows only after its items are
  // closed.
  bool open(JsonKind kind) {
    if (open_.size() == kMaxDepth) fail(fmt::format("more than {} values are nested", kMaxDepth));
    open_.push_back(&add(kind));
    return true;
  }

  void check_keys(const std::vector<std::string>& keys) const {
    std::vector<std::string_view> sorted(keys.begin(), keys.end());
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) fail(fmt::format("the key '{}' occurs twice", printable(*twice)));
  }

  const std::string& file_;
  const std::int64_t& taken_;
  JsonValue root_;
  std::vector<JsonValue*> open_;
};

std::string_view name_of(JsonKind kind) {
  switch (kind) {
    case JsonKind::kNull:
      return "null";
    case JsonKind::kBoolean:
      return "a boolean";
    case JsonKind::kInteger:
      return "an integer";
    case JsonKind::kNumber:
      return "a number with a point";
    case JsonKind::kString:
      return "a string";
    case JsonKind::kArray:
      return "an array";
    case JsonKind::kObject:
      break;
  }
  return "an object";
}

}  // namespace

JsonValue parse_json(std::string_view text, const std::string& file) {
  std::int64_t taken = 0;
  TreeReader reader(file, taken);
  nlohmann::json::sax_parse(CountedCharacters(text.data(), taken),
                            CountedCharacters(text.data() + text.size(), taken), &reader);
  return reader.take();
}

void JsonPart::fail(std::string_view problem) const {
  throw FormatError(*file_, value_->byte,
                    fmt::format("{}{}", path_.empty() ? "the file" : path_, problem));
}

const JsonValue& JsonPart::checked(JsonKind kind) const {
  if (!is(kind)) fail(fmt::format(" is {}, expected {}", name_of(value_->kind), name_of(kind)));
  return *value_;
}

const std::string& JsonPart::string() const { return checked(JsonKind::kString).text; }

bool JsonPart::boolean() const { return checked(JsonKind::kBoolean).boolean; }

std::int64_t JsonPart::integer() const { return checked(JsonKind::kInteger).integer; }

double JsonPart::number() const {
  if (!is(JsonKind::kInteger)) checked(JsonKind::kNumber);
  return value_->number;
}

std::vector<JsonPart> JsonPart::items() const {
  const JsonValue& array = checked(JsonKind::kArray);
  std::vector<JsonPart> parts;
  parts.reserve(array.items.size());
  for (std::size_t i = 0; i < array.items.size(); ++i) {
    parts.emplace_back(*file_, array.items[i], fmt::format("{}[{}]", path_, i));
  }
  return parts;
}

std::string JsonPart::path_to(std::string_view key) const {
  return path_.empty() ? printable(key) : fmt::format("{}.{}", path_, printable(key));
}

std::optional<JsonPart> JsonPart::find(std::string_view key) const {
  const JsonValue& object = checked(JsonKind::kObject);
  const auto found = std::find(object.keys.begin(), object.keys.end(), key);
  if (found == object.keys.end()) return std::nullopt;
  const JsonValue& item = object.items[static_cast<std::size_t>(found - object.keys.begin())];
  if (item.kind == JsonKind::kNull) return std::nullopt;
  return JsonPart(*file_, item, path_to(key));
}

JsonPart JsonPart::at(std::string_view key) const {
  if (auto found = find(key)) return *std::move(found);
  fail(fmt::format(" has no '{}'", key));
}

bool JsonPart::boolean_or(std::string_view key, bool otherwise) const {
  const auto found = find(key);
  return found ? found->boolean() : otherwise;
}

std::int64_t JsonPart::integer_or(std::string_view key, std::int64_t otherwise) const {
  const auto found = find(key);
  return found ? found->integer() : otherwise;
}

double JsonPart::number_or(std::string_view key, double otherwise) const {
  const auto found = find(key);
  return found ? found->number() : otherwise;
}

std::string JsonPart::string_or(std::string_view key, std::string_view otherwise) const {
  const auto found = find(key);
  return found ? found->string() : std::string(otherwise);
}

}}}  // namespace heed::v0::io
