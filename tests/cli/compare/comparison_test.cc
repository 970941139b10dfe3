// How the comparisons of `heed compare` share its command line.
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "compare/compare_verbs.h"

namespace heed::cli {
namespace {

struct NamedComparison {
  NamedComparison() {
    compare.require_subcommand(0, 1);
    compare.add_option("--epochs", epochs_without_name);
    CLI::App* named = add_comparison(compare, "named", "A comparison that only counts");
    named->add_option("--epochs", epochs);
    named->callback([this] { ++runs; });
  }

  CLI::App compare;
  int epochs_without_name = 0;
  int epochs = 0;
  int runs = 0;
};

TEST(Comparison, HasOptionsOfItsOwn) {
  NamedComparison comparison;
  comparison.compare.parse("named --epochs 3");
  EXPECT_EQ(comparison.runs, 1);
  EXPECT_EQ(comparison.epochs, 3);
  EXPECT_EQ(comparison.epochs_without_name, 0);
}

TEST(Comparison, RefusesTheOptionsOfTheOneWithoutAName) {
  NamedComparison comparison;
  EXPECT_THROW(comparison.compare.parse("--epochs 3 named"), CLI::ExcludesError);
  EXPECT_EQ(comparison.runs, 0);
}

}  // namespace
}  // namespace heed::cli
