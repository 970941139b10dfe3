// The command line that the comparisons of `heed compare` share.
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>

#include "compare/compare_verbs.h"

namespace heed::cli { namespace {

struct NamedComparison {
  NamedComparison() {
    compare.require_subcommand(0, 1);
    compare.add_option("--epochs", epochs_without_name);
    compare.add_option("--out", out)->required();
    compare.callback([this] { runs_without_name += compare.get_subcommands().empty() ? 1 : 0; });
    CLI::App* named = add_comparison(compare, "named", "A comparison that only counts");
    named->add_option("--epochs", epochs);
    named->callback([this] { ++runs; });
  }

  CLI::App compare;
  std::string out;
  int epochs_without_name = 0;
  int runs_without_name = 0;
  int epochs = 0;
  int runs = 0;
};

TEST(Comparison, HasOptionsOfItsOwn) {
  NamedComparison comparison;
  comparison.compare.parse("named --epochs 3");
  EXPECT_EQ(comparison.runs, 1);
  EXPECT_EQ(comparison.epochs, 3);
  EXPECT_EQ(comparison.epochs_without_name, 0);
  EXPECT_EQ(comparison.runs_without_name, 0);
}

TEST(Comparison, RefusesTheOptionsOfTheOneWithoutAName) {
  NamedComparison comparison;
  EXPECT_THROW(comparison.compare.parse("--epochs 3 named"), CLI::ExcludesError);
  EXPECT_EQ(comparison.runs, 0);
}

TEST(Comparison, WithoutANameNeedsWhatIsRequired) {
  NamedComparison comparison;
  EXPECT_THROW(comparison.compare.parse("--epochs 3"), CLI::RequiredError);
  comparison.compare.parse("--epochs 3 --out folder");
  EXPECT_EQ(comparison.runs_without_name, 1);
  EXPECT_EQ(comparison.runs, 0);
}

}  // namespace
}  // namespace heed::cli
