#include "heed/core/config.h"

namespace heed { inline namespace v0 {

const char* version() noexcept { return HEED_VERSION; }

}}  // namespace heed::v0
