// The gradients of randomly drawn attention problems, by the fused path and the reference.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>

#include "support/drawn_attention.h"
#include "support/gradients.h"
#include "support/kernel_tables.h"

namespace heed { namespace {

using testing_support::AttentionCase;
using testing_support::DrawnAttention;
using testing_support::expect_no_faults;
using testing_support::expected_gradients;
using testing_support::grad_out_for;
using testing_support::gradients_of;
using testing_support::inaccuracy;
using testing_support::same_bits;
using testing_support::score_roundings_of;

// Returns the faults of the fused path on this case; empty if there are none.
std::string faults(const AttentionCase& drawn) {
  const DrawnAttention problem(drawn);
  const Tensor<float> grad_out = grad_out_for(problem.views());
  const auto expected = expected_gradients(grad_out, problem.views(), problem.options());
  const double score_roundings = score_roundings_of(drawn);
  std::string text;
  for (const auto* table : testing_support::kernels_of_numbers()) {
    const auto found = gradients_of(*table, grad_out, problem.views(), problem.options());
    const std::string wrong = inaccuracy(found, expected, score_roundings);
    if (!wrong.empty()) text += std::string("on ") + table->name + " " + wrong;
    for (const int threads : {2, 7}) {
      const auto again =
          gradients_of(*table, grad_out, problem.views(), problem.options(), threads);
      if (!same_bits(again, found)) {
        text += std::string("on ") + table->name + " " + std::to_string(threads) +
                " threads give other bits\n";
      }
    }
  }
  return text;
}

TEST(FusedBackwardProperties, PlainScores) {
  expect_no_faults("fused gradients are the reference's, whatever the threads", false, faults);
}

TEST(FusedBackwardProperties, ModifiedScores) {
  expect_no_faults("so it is with scores that are modified", true, faults);
}

}  // namespace
}  // namespace heed
