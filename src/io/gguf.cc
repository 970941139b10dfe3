#include "heed/io/gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <variant>
#include <vector>

#include "core/printable.h"
#include "heed/core/error.h"
#include "io/gguf_header.h"
#include "io/gguf_keys.h"
#include "io/gguf_parts.h"
#include "io/mapped_file.h"

namespace heed { inline namespace v0 {

namespace {

// In the order of GgufValue's alternatives.
constexpr std::array<std::string_view, 8> kKinds{"a bool",
                                                 "an integer",
                                                 "a number",
                                                 "a string",
                                                 "an array of bools",
                                                 "an array of integers",
                                                 "an array of numbers",
                                                 "an array of strings"};
static_assert(kKinds.size() == std::variant_size_v<GgufValue>);

}  // namespace

struct GgufFile::Contents {
  std::string name;
  std::unique_ptr<const io::MappedFile> file;  // null if the bytes are memory of the caller
  std::span<const std::byte> bytes;
  io::GgufHeader header;        // with the tensors of all parts
  std::vector<GgufFile> parts;  // if there are several, all of them

  void add(const GgufFile& part) {
    for (const auto& [tensor, stored] : part.tensors()) {
      GgufTensor placed = stored;
      placed.part = parts.size();
      const auto [place, is_new] = header.tensors.emplace(tensor, placed);
      if (is_new) continue;
      throw FormatError(part.name(), stored.offset,
                        fmt::format("tensor '{}' is in '{}' too", io::printable(tensor),
                                    parts[place->second.part].name()));
    }
    parts.push_back(part);
  }

  const GgufValue& value(std::string_view key) const {
    const auto found = header.metadata.find(key);
    if (found != header.metadata.end()) return found->second;
    throw FormatError(name, header.metadata_end,
                      fmt::format("none of the {} keys before is '{}'", header.metadata.size(),
                                  io::printable(key)));
  }

  template <class T>
  const T& get(std::string_view key) const {
    const GgufValue& found = value(key);
    if (const T* const wanted = std::get_if<T>(&found)) return *wanted;
    refuse(key, kKinds[GgufValue(T{}).index()]);
  }

  [[noreturn]] void refuse(std::string_view key, std::string_view expected) const {
    throw FormatError(name, header.value_begin.find(key)->second,
                      fmt::format("'{}' is {}, expected {}", io::printable(key),
                                  kKinds[value(key).index()], expected));
  }
};

GgufFile::GgufFile(std::shared_ptr<const Contents> contents) : contents_(std::move(contents)) {}

GgufFile GgufFile::open(const std::filesystem::path& path) {
  const GgufFile first = open_alone(path);
  const std::vector<std::filesystem::path> paths = io::other_gguf_parts(first);
  if (paths.empty()) return first;
  const std::int64_t count = std::ssize(paths) + 1;
  auto contents = std::make_shared<Contents>();
  contents->name = first.name();
  contents->bytes = first.bytes();
  contents->header = first.contents_->header;
  contents->parts.push_back(first);
  for (const std::filesystem::path& other : paths) {
    contents->add(io::open_gguf_part(other, std::ssize(contents->parts), count));
  }
  io::check_num_tensors(first, std::ssize(contents->header.tensors));
  return GgufFile(std::move(contents));
}

GgufFile GgufFile::open_alone(const std::filesystem::path& path) {
  auto contents = std::make_shared<Contents>();
  contents->name = path.string();
  contents->file = std::make_unique<const io::MappedFile>(path);
  contents->bytes = contents->file->bytes();
  contents->header = io::parse_gguf_header(contents->bytes, contents->name);
  return GgufFile(std::move(contents));
}

GgufFile GgufFile::parse(std::span<const std::byte> bytes, const std::string& name) {
  auto contents = std::make_shared<Contents>();
  contents->name = name;
  contents->bytes = bytes;
  contents->header = io::parse_gguf_header(bytes, name);
  return GgufFile(std::move(contents));
}

const std::string& GgufFile::name() const noexcept { return contents_->name; }

std::span<const std::byte> GgufFile::bytes() const noexcept { return contents_->bytes; }

std::vector<GgufPart> GgufFile::parts() const {
  if (contents_->parts.empty()) return {{name(), bytes()}};
  std::vector<GgufPart> parts;
  for (const GgufFile& part : contents_->parts) parts.push_back({part.name(), part.bytes()});
  return parts;
}

const std::map<std::string, GgufValue, std::less<>>& GgufFile::metadata() const noexcept {
  return contents_->header.metadata;
}

const std::map<std::string, GgufTensor, std::less<>>& GgufFile::tensors() const noexcept {
  return contents_->header.tensors;
}

bool GgufFile::contains(std::string_view key) const noexcept { return metadata().contains(key); }

bool GgufFile::boolean(std::string_view key) const { return contents_->get<bool>(key); }

std::int64_t GgufFile::integer(std::string_view key) const {
  return contents_->get<std::int64_t>(key);
}

double GgufFile::number(std::string_view key) const {
  if (const auto* const integer = std::get_if<std::int64_t>(&contents_->value(key))) {
    return static_cast<double>(*integer);
  }
  return contents_->get<double>(key);
}

const std::string& GgufFile::string(std::string_view key) const {
  return contents_->get<std::string>(key);
}

const std::vector<std::int64_t>& GgufFile::integers(std::string_view key) const {
  return contents_->get<std::vector<std::int64_t>>(key);
}

const std::vector<double>& GgufFile::numbers(std::string_view key) const {
  return contents_->get<std::vector<double>>(key);
}

const std::vector<std::string>& GgufFile::strings(std::string_view key) const {
  return contents_->get<std::vector<std::string>>(key);
}

}}  // namespace heed::v0

namespace heed { inline namespace v0 { namespace io {

namespace {

template <class T>
constexpr std::string_view kElements = "strings";
template <>
constexpr std::string_view kElements<bool> = "bools";
template <>
constexpr std::string_view kElements<std::int64_t> = "integers";
template <>
constexpr std::string_view kElements<double> = "numbers";

// Formats e.g. "3", "true", "'yarn'", "an array of 4 integers".
struct ValueText {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const { return fmt::format("{}", value); }
  std::string operator()(const std::string& value) const {
    return fmt::format("'{}'", printable(value));
  }
  template <class T>
  std::string operator()(const std::vector<T>& values) const {
    return fmt::format("an array of {} {}", values.size(), kElements<T>);
  }
};

}  // namespace

GgufKeys::GgufKeys(const GgufFile& file, std::string prefix)
    : file_(file), prefix_(std::move(prefix)) {}

std::string GgufKeys::asked(std::string_view key) { return *known_.insert(name_of(key)).first; }

bool GgufKeys::has(std::string_view key) { return file_.contains(asked(key)); }

std::int64_t GgufKeys::integer(std::string_view key, std::int64_t otherwise) {
  return has(key) ? file_.integer(name_of(key)) : otherwise;
}

double GgufKeys::number(std::string_view key) { return file_.number(asked(key)); }

double GgufKeys::number(std::string_view key, double otherwise) {
  return has(key) ? number(key) : otherwise;
}

bool GgufKeys::boolean(std::string_view key, bool otherwise) {
  return has(key) ? file_.boolean(name_of(key)) : otherwise;
}

const std::string& GgufKeys::string(std::string_view key) { return file_.string(asked(key)); }

std::string GgufKeys::string(std::string_view key, const std::string& otherwise) {
  return has(key) ? string(key) : otherwise;
}

const std::vector<std::int64_t>& GgufKeys::integers(std::string_view key) {
  return file_.integers(asked(key));
}

const std::vector<double>& GgufKeys::numbers(std::string_view key) {
  return file_.numbers(asked(key));
}

const std::vector<std::string>& GgufKeys::strings(std::string_view key) {
  return file_.strings(asked(key));
}

std::int64_t GgufKeys::size(std::string_view key) {
  const std::int64_t size = file_.integer(asked(key));
  if (size < 1) fail(key, "at least 1");
  return size;
}

std::int64_t GgufKeys::size_in_layers(std::string_view key, std::int64_t num_layers) {
  using Sizes = std::vector<std::int64_t>;
  const auto found = file_.metadata().find(asked(key));
  const bool is_array =
      found != file_.metadata().end() && std::holds_alternative<Sizes>(found->second);
  if (!is_array) return size(key);
  const auto& sizes = std::get<Sizes>(found->second);
  const bool is_one = std::cmp_equal(sizes.size(), num_layers) && num_layers > 0 &&
                      std::all_of(sizes.begin(), sizes.end(),
                                  [&](std::int64_t size) { return size == sizes.front(); });
  if (!is_one || sizes.front() < 1) {
    fail(key, fmt::format("one number of at least 1 for all {} layers", num_layers));
  }
  return sizes.front();
}

void GgufKeys::expect_number(std::string_view key, double expected, std::string_view reason) {
  if (number(key, expected) == expected) return;
  fail(key, fmt::format("{}: {}", expected, reason));
}

void GgufKeys::expect_flag(std::string_view key, bool expected, std::string_view reason) {
  if (boolean(key, expected) == expected) return;
  fail(key, fmt::format("{}: {}", expected, reason));
}

void GgufKeys::ignore(std::string_view key) { known_.insert(name_of(key)); }

void GgufKeys::refuse_others() const {
  const auto& metadata = file_.metadata();
  for (auto i = metadata.lower_bound(prefix_); i != metadata.end(); ++i) {
    const std::string& key = i->first;
    if (!key.starts_with(prefix_)) return;
    if (known_.contains(key)) continue;
    const bool is_ignored = std::any_of(known_.begin(), known_.end(), [&](const std::string& name) {
      return name.ends_with('.') && key.starts_with(name);
    });
    if (is_ignored) continue;
    fail(key.substr(prefix_.size()),
         "no such key: heed does not know what it means and would compute without it");
  }
}

void GgufKeys::fail(std::string_view key, std::string_view expected) const {
  const std::string name = name_of(key);
  const auto found = file_.metadata().find(name);
  const std::string value =
      found == file_.metadata().end() ? "missing" : std::visit(ValueText{}, found->second);
  throw FormatError(file_.name(), 0,
                    fmt::format("{} is {}, expected {}", printable(name), value, expected));
}

}}}  // namespace heed::v0::io
