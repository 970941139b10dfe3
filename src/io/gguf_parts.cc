#include "io/gguf_parts.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <system_error>

#include "core/printable.h"
#include "heed/core/error.h"

namespace heed { inline namespace v0 { namespace io {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kNumberKey = "split.no";  // counted from 0
constexpr std::string_view kCountKey = "split.count";
constexpr std::string_view kTensorsKey = "split.tensors.count";  // of all parts

// The most parts that five digits can number.
constexpr std::int64_t kMostParts = 99999;

std::int64_t integer_or(const GgufFile& file, std::string_view key, std::int64_t otherwise) {
  return file.contains(key) ? file.integer(key) : otherwise;
}

std::string ending_of_part(std::int64_t index, std::int64_t count) {
  return fmt::format("-{:05}-of-{:05}.gguf", index + 1, count);
}

// The first part's path without the ending that numbers it.
std::string stem_of(const GgufFile& first, std::int64_t count) {
  const std::int64_t index = integer_or(first, kNumberKey, 0);
  const std::string_view name = first.name();
  if (count > kMostParts || index < 0 || index >= count) {
    throw FormatError(first.name(), 0,
                      fmt::format("{} is {} and {} is {}, expected a part of at most {}",
                                  kNumberKey, index, kCountKey, count, kMostParts));
  }
  if (index > 0) {
    throw FormatError(first.name(), 0,
                      fmt::format("it is part {} of {}; give the first, whose name ends in {}",
                                  index + 1, count, ending_of_part(0, count)));
  }
  const std::string ending = ending_of_part(0, count);
  if (!name.ends_with(ending)) {
    throw FormatError(first.name(), 0,
                      fmt::format("it is the first of {} parts, whose name must end in {}, so that "
                                  "the others are found beside it",
                                  count, ending));
  }
  return std::string(name.substr(0, name.size() - ending.size()));
}

}  // namespace

std::int64_t num_gguf_parts(const GgufFile& file) { return integer_or(file, kCountKey, 1); }

std::vector<fs::path> other_gguf_parts(const GgufFile& first) {
  const std::int64_t count = num_gguf_parts(first);
  std::vector<fs::path> paths;
  if (count <= 1) return paths;
  const std::string stem = stem_of(first, count);
  for (std::int64_t i = 1; i < count; ++i) paths.emplace_back(stem + ending_of_part(i, count));
  return paths;
}

GgufFile open_gguf_part(const fs::path& path, std::int64_t index, std::int64_t count) {
  std::error_code error;
  if (!fs::exists(path, error)) {
    throw IoError(
        fmt::format("cannot read '{}': part {} of {} is not there; all parts must be in "
                    "one folder",
                    printable(path.string()), index + 1, count));
  }
  GgufFile part = GgufFile::open_alone(path);
  const std::int64_t number = integer_or(part, kNumberKey, 0);
  if (number != index || num_gguf_parts(part) != count) {
    throw FormatError(
        part.name(), 0,
        fmt::format("it says that it is part {} of {}, expected {} of {}",
                    number < count ? number + 1 : number, num_gguf_parts(part), index + 1, count));
  }
  return part;
}

void check_num_tensors(const GgufFile& first, std::int64_t found) {
  const std::int64_t expected = integer_or(first, kTensorsKey, found);
  if (found == expected) return;
  throw FormatError(first.name(), 0,
                    fmt::format("{} is {}, but the {} parts hold {}", kTensorsKey, expected,
                                num_gguf_parts(first), found));
}

}}}  // namespace heed::v0::io
