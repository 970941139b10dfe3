/// The exceptions heed throws.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "heed/core/config.h"

namespace heed { inline namespace v0 {

/// A misuse of a function. The text names the function, the argument, what was found and what was
/// expected, e.g. "attention: key head_dim is 64 but query head_dim is 128". Thrown before anything
/// is written.
class HEED_API InvalidArgument : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
  ~InvalidArgument() override;
};

/// A file whose contents are not what its format says. The text names the file and the byte.
class HEED_API FormatError : public std::runtime_error {
 public:
  /// @param file    the file's name, as the caller gave it
  /// @param byte    offset from the start of the file at which the problem was seen
  /// @param problem what was found and what was expected
  FormatError(const std::string& file, std::int64_t byte, const std::string& problem);
  ~FormatError() override;

  const std::string& file() const noexcept { return file_; }
  std::int64_t byte() const noexcept { return byte_; }

 private:
  std::string file_;
  std::int64_t byte_;
};

/// The operating system refused to open, read or write a file. The text names the file and the
/// reason.
class HEED_API IoError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  ~IoError() override;
};

}}  // namespace heed::v0
