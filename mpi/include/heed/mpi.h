/// Ranks that are processes of MPI, on one machine or many: the library heed::mpi, which is built
/// where there is an MPI. heed itself knows nothing of it.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "heed/core/config.h"
#include "heed/distributed/communicator.h"

namespace heed { inline namespace v0 {

struct MpiOptions {
  /// Longer messages are sent in pieces of so many bytes, as an MPI counts in int.
  std::size_t piece_bytes = std::size_t{1} << 30;
};

/// The processes of an MPI communicator as ranks.
///
/// What MPI reports as an error is thrown as CommunicationError with MPI's text. A message of
/// another length than the receiver expects is reported by the receiver alone; lengths and roots
/// that differ in a broadcast or gather are not noticed by every MPI: run_on_all() is there to
/// agree upon them before.
///
/// A transfer that is destroyed without wait() waits. Where an exception leaves, a message that is
/// to be received is withdrawn; one that is sent or broadcast has two seconds to arrive, and then
/// the whole program is aborted with a text that names the rank, for the memory of a message that
/// MPI may still read must not go.
///
/// It may be used by any thread, one at a time, where MPI was initialised with
/// MPI_THREAD_SERIALIZED.
class HEED_API MpiCommunicator final : public Communicator {
 public:
  /// Of a duplicate of `ranks`, so that no message meets others of the program. All ranks call it.
  /// @throws CommunicationError when MPI is not initialised or fails; InvalidArgument unless
  /// 1 ≤ piece_bytes < 2³¹.
  explicit MpiCommunicator(MPI_Comm ranks, const MpiOptions& options = {});
  /// All ranks have to, MPI says, and before MPI_Finalize.
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

/// MPI from MPI_Init_thread to MPI_Finalize.
///
///     int main() {
///       heed::MpiSession mpi;
///       mpi.run([](heed::Communicator& ranks) { … });
///     }
class HEED_API MpiSession {
 public:
  /// Initialises MPI with MPI_THREAD_SERIALIZED, unless the program has done so: then it also
  /// finalises it.
  /// @throws CommunicationError when that cannot be had.
  MpiSession();
  /// Where an exception leaves that run() has not thrown, the program is aborted: the other ranks
  /// would wait for ever.
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  /// Calls `body` on every rank with a communicator of all processes, and returns when it has
  /// returned on all. All processes call it.
  ///
  /// When it throws on every rank, each throws what its own did, as after run_on_all(); when on
  /// some, the others, where it returned, throw CommunicationError, which names the first of those
  /// and its text. When the others do not come to an end within `patience_seconds`, as they wait
  /// for this one, the exception's text is printed to standard error with the rank, and the program
  /// is aborted: exit code 1.
  void run(const std::function<void(Communicator&)>& body, double patience_seconds = 2);

  /// How many threads a rank may use for none to be in another's way: the processors that it may
  /// run on, shared with the ranks on this machine that may run on them as well. All processes call
  /// it.
  int num_threads() const;

 private:
  bool owns_ = false;
  bool all_know_ = false;  // why run() throws
};

}}  // namespace heed::v0
