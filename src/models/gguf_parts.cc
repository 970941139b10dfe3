#include "models/gguf_parts.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <system_error>

#include "core/printable.h"
#include "heed/core/error.h"

namespace heed { inline namespace v0 { namespace models {

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

std::int64_t num_parts(const GgufFile& file) { return integer_or(file, kCountKey, 1); }

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

GgufFile open_part(const fs::path& path, std::int64_t index, std::int64_t count) {
  std::error_code error;
  if (!fs::exists(path, error)) {
    throw IoError(
        fmt::format("cannot read '{}': part {} of {} is not there; all parts must be in "
                    "one folder",
                    io::printable(path.string()), index + 1, count));
  }
  GgufFile part = GgufFile::open(path);
  if (integer_or(part, kNumberKey, 0) != index || num_parts(part) != count) {
    throw FormatError(
        part.name(), 0,
        fmt::format("it says that it is part {} of {}, expected {} of {}",
                    integer_or(part, kNumberKey, 0) + 1, num_parts(part), index + 1, count));
  }
  return part;
}

void check_num_tensors(const std::vector<GgufFile>& parts) {
  std::int64_t found = 0;
  for (const GgufFile& part : parts) found += std::ssize(part.tensors());
  const std::int64_t expected = integer_or(parts.front(), kTensorsKey, found);
  if (found == expected) return;
  throw FormatError(parts.front().name(), 0,
                    fmt::format("{} is {}, but the {} parts hold {}", kTensorsKey, expected,
                                parts.size(), found));
}

}  // namespace

std::vector<GgufFile> open_gguf_parts(const fs::path& path) {
  std::vector<GgufFile> parts{GgufFile::open(path)};
  const std::int64_t count = num_parts(parts.front());
  if (count <= 1) return parts;
  const std::string stem = stem_of(parts.front(), count);
  for (std::int64_t i = 1; i < count; ++i) {
    parts.push_back(open_part(stem + ending_of_part(i, count), i, count));
  }
  check_num_tensors(parts);
  return parts;
}

void check_is_whole(const GgufFile& file) {
  if (num_parts(file) <= 1) return;
  throw FormatError(
      file.name(), 0,
      fmt::format("it is one of {} parts; open the first by its path", num_parts(file)));
}

}}}  // namespace heed::v0::models
