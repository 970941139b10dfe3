// Tables of functions that threads select at the same time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "attention/kernels/target.h"
#include "models/kernels/row_functions.h"
#include "models/kernels/weight_kernels.h"
#include "nn/ops/vector_loops.h"

namespace heed { namespace {

// Returns the selections of the first call of each kind, all made at once.
std::vector<std::string> first_choices() {
  const std::vector<std::function<std::string()>> calls{
      [] { return std::string(vectors_in_use()); },
      [] { return std::string(nn::vector_loops<float>().vectors); },
      [] { return std::string(nn::vector_loops<double>().vectors); },
      [] { return std::string(models::row_functions().vectors); },
      [] { return std::string(models::weight_kernels_in_use().name); }};
  std::vector<std::string> choices(calls.size());
  std::latch all_here(static_cast<std::ptrdiff_t>(calls.size()));
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    threads.emplace_back([&, i] {
      all_here.arrive_and_wait();
      choices[i] = calls[i]();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return choices;
}

// Exits with 0 if all calls select the best, in a process that has selected nothing before.
[[noreturn]] void choose_and_exit() {
  const std::vector<std::string> choices = first_choices();
  const std::string best = models::supported_weight_kernels().front()->name;
  for (const std::string& choice : choices) {
    if (choice != best) std::_Exit(1);
  }
  std::_Exit(0);
}

TEST(FirstCalls, AllFindTheBestTableAtTheSameTime) {
  if (std::getenv("HEED_TARGET") != nullptr) GTEST_SKIP() << "another one is asked for";
  if (models::supported_weight_kernels().size() == 1) GTEST_SKIP() << "there is one only";
  // Each death test starts a new program.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (int i = 0; i < 6; ++i) EXPECT_EXIT(choose_and_exit(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace heed
