#include "train/text_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>

#include "heed/error.h"

namespace heed::cli {

std::string read_text_file(const std::filesystem::path& path) {
  const auto refuse = [&path](const std::string& reason) {
    throw IoError(fmt::format("cannot read '{}': {}", path.string(), reason));
  };
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) refuse("it is a directory");
  std::ifstream stream(path, std::ios::binary);
  if (!stream) refuse(std::generic_category().message(errno));
  std::string text(std::istreambuf_iterator<char>(stream), {});
  if (stream.bad()) refuse("it could not be read to its end");
  return text;
}

std::string checksum(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return fmt::format("{:016x}", hash);
}

}  // namespace heed::cli
