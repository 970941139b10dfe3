#include "core/float_environment.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <cstdint>
#include <stdexcept>

#include "attention/bits/hash.h"
#include "heed/core/random.h"
#include "support/caller_mode.h"

namespace heed::float_environment_test { namespace {

using Kind = CallerMode::Kind;

// Hidden from the compiler, which would compute at once.
double hidden(double x) {
  volatile double copy = x;
  return copy;
}
double third() { return hidden(1) / hidden(3); }
double half_of_smallest_normal() { return hidden(0x1p-1022) / hidden(2); }

TEST(FloatEnvironment, RoundsToNearestAndKeepsSubnormalNumbers) {
  const double nearest = third();
  for (const Kind kind : {Kind::kUpward, Kind::kDownward, Kind::kTowardZero, Kind::kFlushed}) {
    const CallerMode mode(kind);
    const FloatEnvironment environment;
    EXPECT_EQ(third(), nearest);
    EXPECT_NE(half_of_smallest_normal(), 0);
  }
}

TEST(FloatEnvironment, RestoresTheModeOfItsCaller) {
  for (const Kind kind : {Kind::kUpward, Kind::kDownward, Kind::kTowardZero, Kind::kFlushed}) {
    const CallerMode mode(kind);
    const std::uint64_t before = CallerMode::now();
    {
      const FloatEnvironment environment;
      EXPECT_NE(CallerMode::now(), before);
      const FloatEnvironment inner;
    }
    EXPECT_EQ(CallerMode::now(), before);
    try {
      const FloatEnvironment environment;
      throw std::runtime_error("");
    } catch (const std::runtime_error&) {
      EXPECT_EQ(CallerMode::now(), before);
    }
  }
}

TEST(FloatEnvironment, KeepsFlagsWhereNothingIsChanged) {
  std::feclearexcept(FE_ALL_EXCEPT);
  {
    const FloatEnvironment environment;
    third();
  }
  EXPECT_NE(std::fetestexcept(FE_INEXACT), 0);
}

TEST(FloatEnvironment, GeneratorsDrawTheSameNumbersForEveryCaller) {
  expect_no_influence_of_the_caller({
      {"TorchGenerator::normal",
       [] {
         TorchGenerator generator(1);
         Tensor<float> many({100});
         Tensor<double> few({5});
         generator.normal(many.view(), 0.1, 1e-40);
         generator.normal(few.view(), 0.1, 1.7);
         bits::Hash hash;
         hash.add(many);
         hash.add(few);
         return hash.value();
       }},
      {"TorchGenerator::uniform",
       [] {
         TorchGenerator generator(1);
         Tensor<float> numbers({100});
         generator.uniform(numbers.view(), 0.1, 0.7);
         bits::Hash hash;
         hash.add(numbers);
         return hash.value();
       }},
      {"NumpyRandomState",
       [] {
         NumpyRandomState state(1);
         bits::Hash hash;
         hash.add(state.rand({50}));
         hash.add(state.randn({51}));
         return hash.value();
       }},
  });
}

}  // namespace
}  // namespace heed::float_environment_test
