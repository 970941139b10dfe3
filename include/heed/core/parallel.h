/// Loops over many threads: parallel_for, how many threads it may use, and who provides them.
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
/// The chunks depend on begin, end and grain only, so a body whose chunks are independent computes
/// the same whatever the number of threads. Loops nest. While a thread waits for a loop to finish
/// it runs chunks of that loop and nothing else of the caller's. One chunk or one thread runs right
/// here, in order. When a chunk throws, no further chunk starts and the exception thrown first is
/// rethrown here.
///
/// @throws InvalidArgument when begin > end, end − begin does not fit in 63 bits, or grain < 1.
HEED_API void parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain,
                           FunctionRef<void(std::int64_t first, std::int64_t last)> body);

/// The number of threads a loop started here may use: the smallest ThreadLimit around it, or else
/// what set_num_threads said, or else what the executor has.
HEED_API int num_threads();

/// Sets num_threads() for every thread of the process that has no ThreadLimit of its own. It may
/// exceed the number of processors; 0 returns to the executor's own number.
/// @throws InvalidArgument unless 0 ≤ count ≤ 4096.
HEED_API void set_num_threads(int count);

/// Lowers num_threads() to at most `count` for loops that the current thread starts while the limit
/// lives, and for the loops nested in them. With the default executor these use no more threads
/// together.
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

  /// How many threads a loop should use when nobody set a number.
  virtual int num_threads() const = 0;

  /// Calls work() `count` times, on as many threads as it can spare at once, and returns when every
  /// call has returned. The calls share the chunks of one loop: each takes chunks until none is
  /// left. So fewer calls than `count`, or none, are allowed too: the loop's caller does what was
  /// left over. work() never throws. run is called from several threads at once, also from within
  /// work() when loops nest.
  virtual void run(int count, FunctionRef<void()> work) = 0;
};

/// Runs every loop that starts from now on with `executor`; nullptr returns to the default: threads
/// of heed's own, started when they are first needed. Between two loops they keep their processors
/// for 200 µs, or HEED_SPIN_MICROSECONDS of the environment, before they sleep.
HEED_API void set_executor(std::shared_ptr<Executor> executor);

/// The default, for an executor that leaves some loops to it: those of other threads, or of a
/// forked process.
HEED_API Executor& default_executor();

}}  // namespace heed::v0
