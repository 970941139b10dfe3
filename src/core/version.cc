#include "heed/config.h"

namespace heed::inline v0 {

const char* version() noexcept { return HEED_VERSION; }

}  // namespace heed::inline v0
