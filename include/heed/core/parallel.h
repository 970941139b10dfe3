/// Parallel loops: parallel_for, the number of threads, and the executor that provides them.
#pragma once

#include <cstdint>
#include <memory>

#include "heed/core/config.h"
#include "heed/core/error.h"
#include "heed/core/function_ref.h"

namespace heed { inline namespace v0 {

/// Calls body(first, last) for consecutive chunks of [begin, end), each `grain` long but for the
/// last, on up to num_threads() threads, and returns when all are done.
///
/// The chunks depend on begin, end and grain only, so a body whose chunks are independent has the
/// same result for any number of threads. Loops nest. While a thread waits for a loop to finish, it
/// runs chunks of that loop only. With one chunk or one thread, the calling thread runs the chunks
/// in order. When a chunk throws, no further chunk starts and the first exception is rethrown to
/// the caller. The body computes with numbers rounded to nearest and subnormal ones kept, on every
/// thread, whatever mode the caller has set.
///
/// @throws InvalidArgument when begin > end, end − begin does not fit in 63 bits, or grain < 1.
HEED_API void parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain,
                           FunctionRef<void(std::int64_t first, std::int64_t last)> body);

/// The number of threads that a loop may use when the current thread starts it: the smallest
/// ThreadLimit in effect, otherwise the number of set_num_threads(), otherwise that of the
/// executor.
HEED_API int num_threads();

/// Sets num_threads() for every thread of the process that has no ThreadLimit of its own. It may
/// exceed the number of processors; 0 returns to the executor's own number.
/// @throws InvalidArgument unless 0 ≤ count ≤ 4096.
HEED_API void set_num_threads(int count);

/// During its lifetime, lowers num_threads() to at most `count` for loops that the current thread
/// starts, and for the loops nested in them. With the default executor they use at most `count`
/// threads together.
class HEED_API ThreadLimit {
 public:
  /// @throws InvalidArgument when count < 1.
  explicit ThreadLimit(int count);
  ~ThreadLimit();
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

 private:
  int outer_limit_;
};

/// Provides the threads of parallel_for: derive from it to run heed's loops in an application's own
/// pool.
class HEED_API Executor {
 public:
  Executor() = default;
  virtual ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// The number of threads of a loop when none was set.
  virtual int num_threads() const = 0;

  /// Calls work() `count` times, on as many threads as are available, and returns when every call
  /// has returned. The calls share the chunks of one loop: each takes chunks until none is left.
  /// The executor may make fewer calls than `count`, or none; the loop's caller then does the rest.
  /// work() never throws. run() is called from several threads at once, also from within work()
  /// when loops nest.
  virtual void run(int count, FunctionRef<void()> work) = 0;
};

/// Sets the executor of all loops that start later. nullptr selects the default: threads of heed's
/// own, started when first needed. Between loops they stay active for 200 µs, or
/// HEED_SPIN_MICROSECONDS of the environment, before they sleep.
HEED_API void set_executor(std::shared_ptr<Executor> executor);

/// The default executor, for an executor that passes some loops on to it, such as those of other
/// threads or of a forked process.
HEED_API Executor& default_executor();

}}  // namespace heed::v0
