// Randomly drawn attention problems, by the fused path and the reference.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>

#include "support/drawn_attention.h"
#include "support/fused.h"
#include "support/kernel_tables.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing_support::AttentionCase;
using testing_support::DrawnAttention;
using testing_support::expect_no_faults;
using testing_support::expected_of;
using testing_support::inaccuracy;
using testing_support::run;
using testing_support::run_on_threads;
using testing_support::same_bits;
using testing_support::score_roundings_of;

// Returns the faults of the fused path on this case; empty if there are none.
std::string faults(const AttentionCase& drawn) {
  const DrawnAttention problem(drawn);
  const auto expected = expected_of(problem.views(), problem.options());
  const double score_roundings = score_roundings_of(drawn);
  std::string text;
  for (const auto* table : testing_support::kernels_of_numbers()) {
    const auto found = run(*table, problem.views(), problem.options());
    const std::string wrong = inaccuracy(found, expected, score_roundings);
    if (!wrong.empty()) text += std::string("on ") + table->name + " " + wrong;
    for (const int threads : {1, 2, 7}) {
      const auto again = run_on_threads(threads, *table, problem.views(), problem.options());
      if (!same_bits(again.out, found.out) || !same_bits(again.lse, found.lse)) {
        text += std::string("on ") + table->name + " " + std::to_string(threads) +
                " threads give other bits\n";
      }
    }
  }
  return text;
}

TEST(FusedProperties, PlainScores) {
  expect_no_faults("fused attention is the reference's, whatever the threads", false, faults);
}

TEST(FusedProperties, ModifiedScores) {
  expect_no_faults("so it is with scores that are modified", true, faults);
}

}  // namespace
}  // namespace heed
