#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "heed/attention/diagnostics.h"

namespace heed { namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

using Weight = std::function<double(std::int64_t h, std::int64_t q, std::int64_t k)>;

// Returns the diagnostics of rows of 8 keys with weights proportional to `weight`.
AttentionDiagnostics measured(std::int64_t num_heads, const Weight& weight,
                              const DiagnosticsOptions& lengths = {}) {
  constexpr std::int64_t kLength = 8;
  Tensor<double> weights({1, num_heads, kLength, kLength});
  for (std::int64_t h = 0; h < num_heads; ++h) {
    for (std::int64_t q = 0; q < kLength; ++q) {
      double sum = 0;
      for (std::int64_t k = 0; k < kLength; ++k) sum += weight(h, q, k);
      for (std::int64_t k = 0; k < kLength; ++k) weights(0, h, q, k) = weight(h, q, k) / sum;
    }
  }
  return weight_diagnostics(weights, {}, lengths);
}

// Returns 1 at one place and a small number elsewhere.
double peak(bool is_there) { return is_there ? 1 : 0.02; }

std::vector<FindingKind> kinds_of(const AttentionDiagnostics& diagnostics) {
  const auto findings = attention_findings(diagnostics);
  std::vector<FindingKind> kinds;
  kinds.reserve(findings.size());
  for (const Finding& finding : findings) kinds.push_back(finding.kind);
  return kinds;
}

TEST(AttentionFindings, NameEachPattern) {
  const auto kind = [](const Weight& weight) { return kinds_of(measured(1, weight)); };
  EXPECT_THAT(kind([](auto, auto q, auto k) { return peak(k == q); }),
              ElementsAre(FindingKind::kDiagonal));
  EXPECT_THAT(
      kind([](auto, auto q, auto k) { return peak(k == std::max<std::int64_t>(q - 1, 0)); }),
      ElementsAre(FindingKind::kPreviousToken));
  EXPECT_THAT(kind([](auto, auto q, auto k) { return peak(k == q + 1); }),
              ElementsAre(FindingKind::kNextToken));
  EXPECT_THAT(kind([](auto, auto q, auto k) { return peak(k == q - 3); }),
              ElementsAre(FindingKind::kOffset));
  EXPECT_THAT(kind([](auto, auto, auto k) { return peak(k == 0); }),
              ElementsAre(FindingKind::kFirstTokenSink));
  EXPECT_THAT(kind([](auto, auto, auto k) { return peak(k == 6); }),
              ElementsAre(FindingKind::kVertical));
  EXPECT_THAT(kind([](auto, auto q, auto k) { return 1.0 + static_cast<double>(q * k % 7); }),
              IsEmpty());
}

TEST(AttentionFindings, SayWhatWasMeasuredWhatItMeansAndWhatToTry) {
  const auto found =
      attention_findings(measured(1, [](auto, auto q, auto k) { return peak(k == q - 3); }));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found[0].measured,
              AllOf(HasSubstr("head 0: 0.8"), HasSubstr("at a fixed distance, -3")));
  EXPECT_NEAR(found[0].score, 1 / 1.14, 1e-9);
  EXPECT_FALSE(found[0].is_problem);
  EXPECT_FALSE(found[0].meaning.empty());
  EXPECT_FALSE(found[0].advice.empty());
  EXPECT_EQ(name_of(found[0].kind), "fixed-offset head");
}

TEST(AttentionFindings, UniformAndDeadHeads) {
  const auto found = attention_findings(measured(3, [](auto h, auto q, auto k) {
    if (h == 0) return 1.0;                                           // dead
    if (h == 1) return 1.0 + 0.5 * static_cast<double>((q + k) % 2);  // uniform
    return peak(k == q);
  }));
  ASSERT_EQ(found.size(), 3U);
  EXPECT_THAT(found[0],
              AllOf(Field(&Finding::kind, FindingKind::kUniform),
                    Field(&Finding::heads, ElementsAre(1)), Field(&Finding::is_problem, true)));
  EXPECT_THAT(found[0].measured, HasSubstr("entropy 0.990"));
  EXPECT_THAT(found[1], AllOf(Field(&Finding::kind, FindingKind::kDead),
                              Field(&Finding::heads, ElementsAre(0))));
  EXPECT_THAT(found[2], AllOf(Field(&Finding::kind, FindingKind::kDiagonal),
                              Field(&Finding::heads, ElementsAre(2))));
}

TEST(AttentionFindings, ASinkThatTakesEverythingIsADeadHead) {
  auto diagnostics = measured(1, [](auto, auto q, auto k) { return peak(k == q); });
  diagnostics.heads[0].total = 0.01;
  const auto found = attention_findings(diagnostics);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].kind, FindingKind::kDead);
  EXPECT_THAT(found[0].measured, HasSubstr("the sink takes 0.990"));
}

TEST(AttentionFindings, DuplicatesAndCollapse) {
  const auto place = [](std::int64_t h, std::int64_t q) {
    return h == 3 ? (3 * q + 1) % 8 : (5 * q + 2 * (h == 2 ? 1 : 0)) % 8;
  };
  const Weight weight = [&](auto h, auto q, auto k) { return peak(k == place(h, q)); };
  const auto found = attention_findings(measured(4, weight));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].kind, FindingKind::kDuplicate);
  EXPECT_THAT(found[0].heads, ElementsAre(0, 1));
  EXPECT_NEAR(found[0].score, 1, 1e-12);
  const auto two = attention_findings(measured(2, weight));
  ASSERT_EQ(two.size(), 1U);
  EXPECT_EQ(two[0].kind, FindingKind::kCollapse);
  EXPECT_THAT(two[0].measured, HasSubstr("mean cosine similarity of two heads is 1.000"));
}

TEST(AttentionFindings, PaddingAndBrokenRowsComeFirst) {
  auto diagnostics =
      measured(2, [](auto, auto q, auto k) { return peak(k == q); }, {.kv_lengths = {7}});
  diagnostics.heads[1].broken_rows = 3;
  const auto found = attention_findings(diagnostics);
  ASSERT_GE(found.size(), 2U);
  EXPECT_EQ(found[0].kind, FindingKind::kNotFinite);
  EXPECT_THAT(found[0].heads, ElementsAre(1));
  EXPECT_THAT(found[0].measured, HasSubstr("3 rows"));
  EXPECT_EQ(found[1].kind, FindingKind::kPadding);
  EXPECT_THAT(found[1].measured, HasSubstr("of the weight lies on padding, expected 0"));
}

TEST(AttentionFindings, ThresholdsAreTheCallers) {
  const auto diagnostics = measured(1, [](auto, auto q, auto k) { return peak(k == q); });
  EXPECT_THAT(attention_findings(diagnostics, {.pattern = 0.99}), IsEmpty());
  EXPECT_EQ(attention_findings(diagnostics, {.uniform = 0.1, .pattern = 0.99}).front().kind,
            FindingKind::kUniform);
}

TEST(AttentionFindings, NothingIsSaidOfHeadsWithoutRows) {
  EXPECT_THAT(attention_findings(weight_diagnostics(Tensor<double>({1, 2, 0, 4}))), IsEmpty());
}

}  // namespace
}  // namespace heed
