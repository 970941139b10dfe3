#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "heed/attention.h"
#include "heed/core/processor.h"
#include "support/command.h"

namespace heed { namespace {

using testing::HasSubstr;
using testing::Not;
using testing_support::run_command;

TEST(InfoCommand, EveryTargetCanBeForced) {
  for (const std::string& target : attention_targets()) {
    const auto result = run_command({"info", "--json"}, {{"HEED_TARGET", target}});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto info = nlohmann::json::parse(result.out);
    EXPECT_EQ(info["attention_target"], target);
    EXPECT_EQ(info["attention_targets"], attention_targets());
    const bool has_own_bits = target == "SSE4" || target == "reference";
    EXPECT_EQ(info["bits"], has_own_bits ? target : "exact");
    const bool has_pairs = target.ends_with("_BF16");
    EXPECT_EQ(info["bits_of_bfloat16"], has_pairs ? nlohmann::json(target) : info["bits"]);
  }
}

TEST(InfoCommand, AnUnknownTargetIsNamed) {
  const auto result = run_command({"info"}, {{"HEED_TARGET", "MMX"}});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("HEED_TARGET is 'MMX', but this processor has only: "));
}

// Also on a processor that OpenBLAS does not know.
TEST(InfoCommand, ProductsAreNotComputedAsOnAnOldProcessor) {
  const auto blas_of = [](const testing_support::Environment& environment) {
    const auto result = run_command({"info", "--json"}, environment);
    return nlohmann::json::parse(result.out)["blas"].get<std::string>();
  };
  const auto sets = supported_instruction_sets();
  if (std::find(sets.begin(), sets.end(), "AVX2") == sets.end()) GTEST_SKIP() << "it is an old one";
  EXPECT_THAT(blas_of({}), Not(HasSubstr("Prescott")));
  if (blas_of({}).find("DYNAMIC_ARCH") == std::string::npos) return;
  EXPECT_THAT(blas_of({{"OPENBLAS_CORETYPE", "Prescott"}}), HasSubstr("Prescott"));
}

}  // namespace
}  // namespace heed
