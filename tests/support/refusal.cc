#include "support/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "heed/core/error.h"

namespace heed::testing_support {

void expect_refused(const std::function<void()>& call, const std::string& text) {
  EXPECT_THAT(call, testing::ThrowsMessage<InvalidArgument>(testing::HasSubstr(text)));
}

}  // namespace heed::testing_support
