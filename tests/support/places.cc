#include "support/places.h"

namespace heed::testing_support {

std::string test_data() { return HEED_TEST_DATA; }
std::string source_folder() { return HEED_SOURCE_DIR; }
std::string heed_command() { return HEED_COMMAND; }

}  // namespace heed::testing_support
