/// Exceptions.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "heed/core/config.h"

namespace heed { inline namespace v0 {

/// Thrown when a function is misused, before anything is written. The text names the function, the
/// argument, the value found and the value expected, e.g. "attention: key head_dim is 64 but query
/// head_dim is 128".
class HEED_API InvalidArgument : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
  ~InvalidArgument() override;
};

/// Thrown when the contents of a file do not follow its format. The text names the file and the
/// byte.
class HEED_API FormatError : public std::runtime_error {
 public:
  /// @param file    the file's name, as the caller gave it
  /// @param byte    offset of the problem from the start of the file
  /// @param problem the value found and the value expected
  FormatError(const std::string& file, std::int64_t byte, const std::string& problem);
  ~FormatError() override;

  const std::string& file() const noexcept { return file_; }
  std::int64_t byte() const noexcept { return byte_; }

 private:
  std::string file_;
  std::int64_t byte_;
};

/// Thrown when the operating system refuses to open, read or write a file. The text names the file
/// and the reason.
class HEED_API IoError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  ~IoError() override;
};

}}  // namespace heed::v0
