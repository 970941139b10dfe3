// The paths that tests use.
#pragma once

#include <string>

namespace heed::testing_support {

std::string test_data();      // the folder tests/data
std::string source_folder();  // of the project
std::string heed_command();   // the command's path; empty where it is not built

}  // namespace heed::testing_support
