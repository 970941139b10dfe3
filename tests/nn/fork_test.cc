#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

#include "heed/core/parallel.h"
#include "heed/nn/ops.h"
#include "support/forks.h"
#include "support/tensors.h"

namespace heed::nn { namespace {

using testing_support::normal;
using testing_support::same_bits;
using testing_support::why_forks_hang;

// The backward pass in a forked process, with loops long enough to be divided.
TEST(ForkedTape, GoesBackwards) {
  if (why_forks_hang() != nullptr) GTEST_SKIP() << why_forks_hang();
  set_num_threads(6);
  const auto gradient = [] {
    const Variable<> x(normal<float>({300, 400}, 1), true);
    const Variable<> weight(normal<float>({400, 300}, 2), true);
    sum(matmul(x, weight)).backward();
    return to_tensor(weight.grad());
  };
  const Tensor<float> expected = gradient();
  std::atomic<bool> is_over = false;
  std::vector<std::thread> load;
  load.reserve(2);
  for (int i = 0; i < 2; ++i) {
    load.emplace_back([&] {
      while (!is_over) (void)gradient();
    });
  }
  for (int i = 0; i < 20; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);
      ::_exit(same_bits(gradient(), expected) ? 0 : 1);
    }
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    EXPECT_TRUE(WIFEXITED(status)) << "it hung";
    EXPECT_EQ(WEXITSTATUS(status), 0);
    if (HasFailure()) break;
  }
  is_over = true;
  for (std::thread& thread : load) thread.join();
  set_num_threads(0);
}

}  // namespace
}  // namespace heed::nn
