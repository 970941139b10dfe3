#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "heed/attention.h"
#include "support/command.h"

namespace heed {
namespace {

using testing::HasSubstr;
using testing_support::run_command;

TEST(InfoCommand, EveryTargetCanBeForced) {
  for (const std::string& target : attention_targets()) {
    const auto result = run_command({"info", "--json"}, {{"HEED_TARGET", target}});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto info = nlohmann::json::parse(result.out);
    EXPECT_EQ(info["attention_target"], target);
    EXPECT_EQ(info["attention_targets"], attention_targets());
  }
}

TEST(InfoCommand, AnUnknownTargetIsNamed) {
  const auto result = run_command({"info"}, {{"HEED_TARGET", "MMX"}});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("HEED_TARGET is 'MMX', but this processor has only: "));
}

}  // namespace
}  // namespace heed
