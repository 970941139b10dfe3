#include "heed/io/gguf.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "core/printable.h"
#include "heed/core/error.h"
#include "io/gguf_header.h"
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
  io::GgufHeader header;

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
  auto contents = std::make_shared<Contents>();
  contents->name = path.string();
  contents->file = std::make_unique<const io::MappedFile>(path);
  contents->header = io::parse_gguf_header(contents->file->bytes(), contents->name);
  return GgufFile(std::move(contents));
}

GgufFile GgufFile::parse(std::span<const std::byte> bytes, const std::string& name) {
  auto contents = std::make_shared<Contents>();
  contents->name = name;
  contents->header = io::parse_gguf_header(bytes, name);
  return GgufFile(std::move(contents));
}

const std::string& GgufFile::name() const noexcept { return contents_->name; }

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
