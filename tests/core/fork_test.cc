// Processes that fork while threads compute: computations in the child end with the same result.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "core/thread_executor.h"
#include "heed/attention.h"
#include "heed/core/memory.h"
#include "heed/core/parallel.h"
#include "heed/core/tensor.h"
#include "support/forks.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing_support::normal;
using testing_support::same_bits;
using testing_support::why_forks_hang;

// More forks than it took to find a lock held in the child, or a missing worker.
constexpr int kForks = 60;
// Ends a child that hangs; one that computes takes milliseconds.
constexpr unsigned kSeconds = 60;

// Runs a loop of many chunks of some microseconds each. Returns true if all of them ran.
bool runs_a_loop() {
  std::atomic<std::int64_t> sum = 0;
  parallel_for(0, 64, 1, [&](std::int64_t first, std::int64_t last) {
    std::atomic<int> work = 0;
    while (work < 1000) ++work;
    sum += last - first;
  });
  return sum == 64;
}

// Computes while it exists, on more threads than there are processors.
class Load {
 public:
  Load() {
    set_num_threads(6);
    for (int i = 0; i < 3; ++i) {
      threads_.emplace_back([this] {
        while (!is_over_) runs_a_loop();
      });
    }
  }
  ~Load() {
    is_over_ = true;
    for (std::thread& thread : threads_) thread.join();
    set_num_threads(0);
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

 private:
  std::atomic<bool> is_over_ = false;
  std::vector<std::thread> threads_;
};

// True if a child in which compute() returns true ends.
template <class Compute>
bool succeeds_in_a_fork(const Compute& compute) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(kSeconds);
    ::_exit(compute() ? 0 : 1);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

class Fork : public testing::Test {
 protected:
  void SetUp() override {
    if (why_forks_hang() != nullptr) GTEST_SKIP() << why_forks_hang();
  }
};

TEST_F(Fork, ComputesTheSame) {
  const auto x = normal<float>({2, 8, 100, 16}, 7);
  const auto expected = attention(x, x, x);
  const Load load;
  for (int i = 0; i < kForks; ++i) {
    ASSERT_TRUE(succeeds_in_a_fork([&] {
      return runs_a_loop() && runs_a_loop() && runs_a_loop() &&
             same_bits(attention(x, x, x), expected);
    })) << i;
  }
}

TEST_F(Fork, KeepsMemory) {
  constexpr std::int64_t kKept = 65536;
  const auto make_and_drop = [] { return Tensor<std::byte>({kKept}).rank(); };
  std::atomic<bool> is_over = false;
  std::thread other([&] {
    while (!is_over) make_and_drop();
  });
  for (int i = 0; i < kForks; ++i) {
    EXPECT_TRUE(succeeds_in_a_fork([&] {
      make_and_drop();
      return kept_memory() >= kKept;
    })) << i;
  }
  is_over = true;
  other.join();
}

TEST_F(Fork, UsesAllThreadsAndSettings) {
  const Load load;
  for (int i = 0; i < kForks; ++i) {
    ASSERT_TRUE(succeeds_in_a_fork([] {
      std::atomic<int> waiting = 0;
      // Each chunk waits for all.
      set_num_threads(3);
      parallel_for(0, 3, 1, [&](std::int64_t, std::int64_t) {
        for (++waiting; waiting < 3;) std::this_thread::yield();
      });
      set_num_threads(0);
      const bool has_threads = num_threads() >= 1;
      set_executor(std::make_shared<ThreadExecutor>(2));
      return has_threads && num_threads() == 2 && waiting == 3;
    })) << i;
  }
}

// Other threads change the settings meanwhile.
TEST_F(Fork, FindsNoLockHeld) {
  std::atomic<bool> is_over = false;
  std::thread changing([&] {
    while (!is_over) set_executor(nullptr);
  });
  for (int i = 0; i < kForks; ++i) {
    EXPECT_TRUE(succeeds_in_a_fork([] {
      set_executor(std::make_shared<ThreadExecutor>(2));
      return num_threads() == 2;
    })) << i;
  }
  is_over = true;
  changing.join();
  set_executor(nullptr);
}

}  // namespace
}  // namespace heed
