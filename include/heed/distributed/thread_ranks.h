/// Ranks that are threads of one process.
#pragma once

#include <functional>

#include "heed/core/config.h"
#include "heed/distributed/communicator.h"

namespace heed { inline namespace v0 {

/// Calls `body` once for each rank, each on a thread of its own, and returns when all have
/// returned: what runs on several machines, in one process, for tests and for ThreadSanitizer.
///
///     heed::run_thread_ranks(4, [](heed::Communicator& ranks) { … ranks.rank() … });
///
/// When a rank throws, what the others wait for, and every later call, throws CommunicationError,
/// which names that rank and says what it threw. It is thrown as well for a message of another
/// length than the one that is expected, for a rank that ended without its part, and when every
/// rank waits.
///
/// A transfer that is destroyed without wait() waits, but where an exception leaves: then its
/// message is withdrawn, and nobody looks at its memory any more.
///
/// Each rank has a default_generator() of its own, which begins as a copy of the caller's; loops
/// inside a rank use num_threads() of the caller divided by `size`, at least one thread; it
/// computes under the caller's Cancellation.
/// @throws InvalidArgument unless 1 ≤ size ≤ 1024; what the first rank to throw threw;
/// std::system_error when the system has no more threads.
HEED_API void run_thread_ranks(int size, const std::function<void(Communicator&)>& body);

}}  // namespace heed::v0
