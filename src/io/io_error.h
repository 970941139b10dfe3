// Errors of the operating system as IoError.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "heed/core/error.h"

namespace heed { inline namespace v0 { namespace io {

// Throws an IoError such as "cannot read 'q.npy': No such file or directory".
[[noreturn]] inline void throw_io_error(std::string_view action, const std::filesystem::path& path,
                                        int error) {
  throw IoError(fmt::format("cannot {} '{}': {}", action, path.string(),
                            std::generic_category().message(error)));
}

// Throws if the path holds a NUL: a system call would stop there and use another file.
inline void check_path(std::string_view action, const std::filesystem::path& path) {
  const std::string text = path.string();
  const std::size_t length = text.find('\0');
  if (length == std::string::npos) return;
  throw IoError(fmt::format("cannot {} '{}': the path goes on after a NUL", action,
                            std::string_view(text).substr(0, length)));
}

}}}  // namespace heed::v0::io
