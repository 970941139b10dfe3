/// Ranks as processes of MPI, on one or more machines: the library heed::mpi, which is built where
/// there is an MPI. heed itself does not depend on MPI.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "heed/core/config.h"
#include "heed/distributed/communicator.h"

namespace heed { inline namespace v0 {

/// The options of MpiCommunicator.
struct MpiOptions {
  /// Longer messages are sent in pieces of this size, because MPI counts in int.
  std::size_t piece_bytes = std::size_t{1} << 30;
};

/// The processes of an MPI communicator as ranks.
///
/// Errors of MPI are thrown as CommunicationError with MPI's text. A message of another length than
/// expected is reported by the receiver alone; not every MPI notices lengths or roots that differ
/// in a broadcast or gather: use run_on_all() to agree on them first.
///
/// A transfer that is destroyed without wait() waits. During the propagation of an exception, a
/// message to be received is withdrawn; a message that is sent or broadcast has two seconds to
/// arrive, and then the whole program is aborted with a text that names the rank, because memory
/// that MPI may still read must not be freed.
///
/// It may be used by any thread, one at a time, where MPI was initialised with
/// MPI_THREAD_SERIALIZED.
class HEED_API MpiCommunicator final : public Communicator {
 public:
  /// Uses a duplicate of `ranks`, so that its messages do not mix with others of the program. All
  /// ranks call it.
  /// @throws CommunicationError when MPI is not initialised or fails; InvalidArgument unless
  /// 1 ≤ piece_bytes < 2³¹.
  explicit MpiCommunicator(MPI_Comm ranks, const MpiOptions& options = {});
  /// MPI requires that all ranks call it, before MPI_Finalize.
  ~MpiCommunicator() override;

  int rank() const override;
  int size() const override;
  [[nodiscard]] std::unique_ptr<Transfer> send(std::span<const std::byte> message, int to,
                                               int tag) override;
  [[nodiscard]] std::unique_ptr<Transfer> receive(std::span<std::byte> message, int from,
                                                  int tag) override;
  [[nodiscard]] std::unique_ptr<Transfer> broadcast(std::span<std::byte> message,
                                                    int root) override;
  void gather(std::span<const std::byte> mine, std::span<std::byte> all) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// The initialisation and finalisation of MPI.
///
///     int main() {
///       heed::MpiSession mpi;
///       mpi.run([](heed::Communicator& ranks) { … });
///     }
class HEED_API MpiSession {
 public:
  /// Initialises MPI with MPI_THREAD_SERIALIZED and finalises it at the end, unless the program has
  /// initialised it.
  /// @throws CommunicationError when MPI does not support this thread level.
  MpiSession();
  /// Finalises MPI if the session initialised it. Then it also aborts the program if an exception
  /// propagates that run() has not thrown, because the other ranks would wait forever.
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  /// Calls `body` on every rank with a communicator of all processes, and returns when it has
  /// returned on all. All processes call it.
  ///
  /// When `body` throws on every rank, each rank throws its own exception, as after run_on_all().
  /// When it throws on some, the others throw CommunicationError with the first of those ranks and
  /// its text. When the others do not finish within `patience_seconds`, because they wait for this
  /// rank, the exception's text is printed to standard error with the rank, and the program is
  /// aborted with exit code 1.
  void run(const std::function<void(Communicator&)>& body, double patience_seconds = 2);

  /// The number of threads per rank that keeps all processors busy once: the processors that this
  /// rank may run on, divided by the ranks of this machine that may run on them too. All processes
  /// call it.
  int num_threads() const;

 private:
  bool owns_ = false;
  bool all_know_ = false;  // true if run() throws an exception that all ranks know of
};

}}  // namespace heed::v0
