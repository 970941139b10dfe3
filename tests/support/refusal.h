// Expects refused calls.
#pragma once

#include <functional>
#include <string>

namespace heed::testing_support {

// Expects an InvalidArgument whose message contains `text`.
void expect_refused(const std::function<void()>& call, const std::string& text);

}  // namespace heed::testing_support
