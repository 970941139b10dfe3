/// Ranks as threads of one process.
#pragma once

#include <functional>

#include "heed/core/config.h"
#include "heed/distributed/communicator.h"

namespace heed { inline namespace v0 {

/// Calls `body` once for each rank, each on a thread of its own, and returns when all have
/// returned. It runs code for several machines in one process, for tests and ThreadSanitizer.
///
///     heed::run_thread_ranks(4, [](heed::Communicator& ranks) { … ranks.rank() … });
///
/// When a rank throws, the transfers that other ranks wait for and all their later calls throw
/// CommunicationError, whose text names that rank and its exception. It is also thrown when a
/// message has another length than expected, when a rank returned without a message that another
/// waits for, and when every rank waits.
///
/// A transfer that is destroyed without wait() waits. During the propagation of an exception its
/// message is withdrawn instead, and its memory is no longer accessed.
///
/// Each rank has its own default_generator(), a copy of the caller's; loops inside a rank use
/// num_threads() of the caller divided by `size`, at least one thread; ranks share the caller's
/// Cancellation.
/// @throws InvalidArgument unless 1 ≤ size ≤ 1024; the exception of the rank that threw first;
/// std::system_error when the system has no more threads.
HEED_API void run_thread_ranks(int size, const std::function<void(Communicator&)>& body);

}}  // namespace heed::v0
