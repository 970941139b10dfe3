#include "io/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <vector>

#include "core/printable.h"
#include "heed/core/error.h"
#include "heed/io/safetensors.h"
#include "io/json.h"
#include "io/little_endian.h"

namespace heed { inline namespace v0 { namespace io {

namespace {

// Follows the parser's events, so that duplicate names are noticed and nothing outside a header is
// built, however deep the text is nested.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  HeaderReader(const std::string& file, const std::int64_t& taken) : file_(file), taken_(taken) {}

  SafetensorsHeader take() { return std::move(header_); }

  bool start_object(std::size_t) override {
    if (place_ == Place::kOutside) {
      place_ = Place::kTop;
    } else if (place_ == Place::kTop) {
      place_ = name_ == kSafetensorsMetadata ? Place::kMetadata : Place::kEntry;
      entry_ = {};
      fields_.clear();
    } else {
      refuse("an object");
    }
    return true;
  }

  bool end_object() override {
    if (place_ == Place::kEntry) finish_entry();
    place_ = place_ == Place::kTop ? Place::kOutside : Place::kTop;
    return true;
  }

  bool key(string_t& key) override {
    if (place_ == Place::kTop) {
      name_ = key;
      if (!names_.insert(key).second) fail(fmt::format("{} occurs twice", subject()));
      return true;
    }
    field_ = key;
    if (!fields_.insert(key).second) {
      fail(fmt::format("{}: the key '{}' occurs twice", subject(), printable(key)));
    }
    const bool is_known = key == "dtype" || key == "shape" || key == "data_offsets";
    if (place_ == Place::kEntry && !is_known) {
      fail(fmt::format("{}: unknown key '{}'", subject(), printable(key)));
    }
    return true;
  }

  bool string(string_t& value) override {
    if (place_ == Place::kMetadata) {
      header_.metadata.emplace(field_, std::move(value));
    } else if (place_ == Place::kEntry && field_ == "dtype") {
      entry_.type = type_of(value);
    } else {
      refuse("a string");
    }
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ != Place::kEntry || field_ == "dtype") refuse("an array");
    place_ = Place::kNumbers;
    numbers_.clear();
    return true;
  }

  bool end_array() override {
    place_ = Place::kEntry;
    if (field_ == "shape") {
      set_shape();
    } else {
      set_offsets();
    }
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != Place::kNumbers) refuse("a number");
    if (value > std::numeric_limits<std::int64_t>::max()) refuse("a number beyond 63 bits");
    if (numbers_.size() == kMaxRank) {
      fail(fmt::format("{}: more than {} numbers in '{}'", subject(), kMaxRank, field_));
    }
    numbers_.push_back(static_cast<std::int64_t>(value));
    return true;
  }

  bool number_integer(number_integer_t) override { refuse("a negative number"); }
  bool number_float(number_float_t, const string_t&) override { refuse("a number with a point"); }
  bool null() override { refuse("null"); }
  bool boolean(bool) override { refuse("a boolean"); }
  bool binary(binary_t&) override { refuse("bytes"); }

  bool parse_error(std::size_t, const std::string&,
                   const nlohmann::json::exception& error) override {
    fail("the header is not JSON: " + problem_of(error));
  }

 private:
  enum class Place { kOutside, kTop, kMetadata, kEntry, kNumbers };

  std::string subject() const { return fmt::format("tensor '{}'", printable(name_)); }

  [[noreturn]] void fail(const std::string& problem) const {
    throw FormatError(file_, kSafetensorsPrefix + taken_, problem);
  }

  [[noreturn]] void refuse(std::string_view found) const {
    switch (place_) {
      case Place::kOutside:
        fail(fmt::format("the header is {}, expected an object", found));
      case Place::kTop:
        fail(fmt::format("{} is {}, expected an object", subject(), found));
      case Place::kMetadata:
        fail(fmt::format("metadata '{}' is {}, expected a string", printable(field_), found));
      case Place::kNumbers:
        fail(fmt::format("{}: {} in '{}', expected numbers of at least 0", subject(), found,
                         field_));
      case Place::kEntry:
        break;
    }
    fail(fmt::format("{}: '{}' is {}, expected {}", subject(), field_, found,
                     field_ == "dtype" ? "a string" : "an array"));
  }

  const ElementType* type_of(const std::string& code) const {
    for (const std::span<const ElementType> types : {std::span<const ElementType>(kElementTypes),
                                                     std::span<const ElementType>(kStoredTypes)}) {
      for (const ElementType& type : types) {
        if (type.safetensors_code == code) return &type;
      }
    }
    fail(fmt::format("{}: dtype '{}' is none that heed has", subject(), printable(code)));
  }

  void set_shape() {
    try {
      entry_.shape = Shape(numbers_);
    } catch (const InvalidArgument& error) {
      fail(fmt::format("{}: {}", subject(), error.what()));
    }
  }

  void set_offsets() {
    if (numbers_.size() != 2 || numbers_[0] > numbers_[1]) {
      fail(fmt::format("{}: data_offsets are not a begin and an end", subject()));
    }
    entry_.begin = numbers_[0];
    entry_.end = numbers_[1];
  }

  void finish_entry() {
    for (const std::string required : {"dtype", "shape", "data_offsets"}) {
      if (!fields_.contains(required)) fail(fmt::format("{} has no '{}'", subject(), required));
    }
    const std::int64_t count = entry_.shape.num_elements();
    const std::int64_t found = entry_.end - entry_.begin;
    if (found % entry_.type->size != 0 || found / entry_.type->size != count) {
      fail(fmt::format(
          "{}: shape {} of {} needs {} elements of {} bytes, its offsets hold {} bytes", subject(),
          to_string(entry_.shape), entry_.type->name, count, entry_.type->size, found));
    }
    header_.entries.emplace(name_, entry_);
  }

  const std::string& file_;
  const std::int64_t& taken_;
  SafetensorsHeader header_;
  Place place_ = Place::kOutside;
  std::set<std::string> names_;
  std::set<std::string> fields_;
  std::string name_;
  std::string field_;
  SafetensorsEntry entry_;
  std::vector<std::int64_t> numbers_;
};

// Checks that the tensors, in the order of their bytes, follow each other from the first byte to
// the last.
void check_tiling(const SafetensorsHeader& header, const std::string& file, std::int64_t data_begin,
                  std::int64_t data_bytes) {
  using Named = std::pair<const std::string, SafetensorsEntry>;
  std::vector<const Named*> in_order;
  in_order.reserve(header.entries.size());
  for (const Named& entry : header.entries) in_order.push_back(&entry);
  std::sort(in_order.begin(), in_order.end(), [](const Named* a, const Named* b) {
    return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
  });
  std::int64_t next = 0;
  for (const Named* named : in_order) {
    const auto& [name, entry] = *named;
    if (entry.begin != next) {
      throw FormatError(file, data_begin + std::min(next, entry.begin),
                        fmt::format("tensor '{}' begins at {} of the data, but the one before it "
                                    "ends at {}",
                                    printable(name), entry.begin, next));
    }
    next = entry.end;
  }
  if (next > data_bytes) {
    throw FormatError(file, data_begin + data_bytes,
                      fmt::format("truncated: the tensors take {} bytes but only {} follow the "
                                  "header",
                                  next, data_bytes));
  }
  if (next < data_bytes) {
    throw FormatError(file, data_begin + next,
                      fmt::format("{} trailing bytes after the last tensor", data_bytes - next));
  }
}

}  // namespace

std::string read_safetensors_header(ByteSource& file) {
  if (file.size() < kSafetensorsPrefix) {
    throw FormatError(file.name(), file.size(),
                      "truncated: a safetensors file has at least 8 bytes");
  }
  std::array<std::byte, kSafetensorsPrefix> prefix{};
  file.read(0, prefix);
  const auto length = FieldReader(prefix).next<std::uint64_t>();
  if (length > static_cast<std::uint64_t>(kMaxSafetensorsHeaderBytes)) {
    throw FormatError(file.name(), 0,
                      fmt::format("the header has {} bytes, at most {} are read", length,
                                  kMaxSafetensorsHeaderBytes));
  }
  const std::int64_t remaining = file.size() - kSafetensorsPrefix;
  if (static_cast<std::int64_t>(length) > remaining) {
    throw FormatError(
        file.name(), file.size(),
        fmt::format("truncated: the header has {} bytes but only {} follow", length, remaining));
  }
  std::string text(length, '\0');
  file.read(kSafetensorsPrefix, std::as_writable_bytes(std::span(text)));
  return text;
}

SafetensorsHeader parse_safetensors_header(std::string_view text, const std::string& file,
                                           std::int64_t data_bytes) {
  if (text.empty() || text.front() != '{') {
    throw FormatError(file, kSafetensorsPrefix, "the header does not begin with '{'");
  }
  // The parser takes a NUL for the end of its input.
  const std::size_t nul = text.find('\0');
  if (nul != std::string_view::npos) {
    throw FormatError(file, kSafetensorsPrefix + static_cast<std::int64_t>(nul),
                      "the header is not JSON: a NUL byte");
  }
  std::int64_t taken = 0;
  HeaderReader reader(file, taken);
  nlohmann::json::sax_parse(CountedCharacters(text.data(), taken),
                            CountedCharacters(text.data() + text.size(), taken), &reader);
  SafetensorsHeader header = reader.take();
  check_tiling(header, file, kSafetensorsPrefix + static_cast<std::int64_t>(text.size()),
               data_bytes);
  return header;
}

}}}  // namespace heed::v0::io
