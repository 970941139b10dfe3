#include "heed/core/error.h"

#include <fmt/format.h>

namespace heed { inline namespace v0 {

InvalidArgument::~InvalidArgument() = default;
FormatError::~FormatError() = default;
IoError::~IoError() = default;

FormatError::FormatError(const std::string& file, std::int64_t byte, const std::string& problem)
    : std::runtime_error(fmt::format("{}: at byte {}: {}", file, byte, problem)),
      file_(file),
      byte_(byte) {}

}}  // namespace heed::v0
