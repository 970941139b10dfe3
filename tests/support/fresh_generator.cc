// Resets the generator before every test, so that its numbers do not depend on other tests.
#include <gtest/gtest.h>

#include "heed/core/random.h"

namespace heed::testing_support { namespace {

class FreshGenerator final : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& /*info*/) override { set_seed(0); }
};

// The list owns it.
[[maybe_unused]] const bool kIsListening = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new FreshGenerator);
  return true;
}();

}  // namespace
}  // namespace heed::testing_support
