// Ranks as Python objects, among them MPI processes through mpi4py: heed's package is not linked
// with MPI.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "heed/core/function_ref.h"
#include "heed/distributed/attention.h"
#include "heed/distributed/communicator.h"

namespace heed::python {

namespace nb = nanobind;

// One rank's view of all ranks, until end().
class Ranks {
 public:
  explicit Ranks(std::unique_ptr<Communicator> owned)
      : owned_(std::move(owned)), ranks_(owned_.get()) {}
  explicit Ranks(Communicator* borrowed) : ranks_(borrowed) {}
  // A view of `of`, which must outlive it, for calls with this division.
  Ranks(const Ranks& of, distributed::DividedBy by) : of_(&of), divided_by_(by) {}

  // @throws InvalidArgument after end().
  Communicator& get() const;
  distributed::Ranks divided() const { return {get(), divided_by_}; }
  void end() noexcept { ranks_ = nullptr; }

 private:
  const Ranks* of_ = nullptr;
  distributed::DividedBy divided_by_ = distributed::DividedBy::kAutomatic;
  std::unique_ptr<Communicator> owned_;
  Communicator* ranks_ = nullptr;
};

// Reads "automatic", "tokens" or "heads".
// @throws InvalidArgument for any other name.
distributed::DividedBy divided_by_named(const std::string& name);

// run_on_all() for a part that runs with the GIL and may raise. A ValueError is raised on all ranks
// with the same text. Any other Python exception is raised on its own rank; the other ranks raise a
// RuntimeError with its type and text.
void on_all(Communicator& ranks, FunctionRef<void()> part);

// Calls mpi4py with the GIL, which mpi4py releases while it waits. Exceptions of mpi4py become
// CommunicationError. The rules of docs/distributed.md for transfers that an exception leaves apply
// here, too: a message to be received is withdrawn, and one that is sent or broadcast has two
// seconds to arrive before all ranks are aborted.
class MpiRanks final : public Communicator {
 public:
  // Uses an mpi4py.MPI.Intracomm that nothing else sends on. `module` is mpi4py.MPI. Messages of
  // more than `piece_bytes` bytes are sent in pieces of this size. Constructor and destructor need
  // the GIL.
  // @throws InvalidArgument unless 1 ≤ piece_bytes < 2³¹; CommunicationError.
  MpiRanks(nb::object comm, nb::object module, std::size_t piece_bytes = std::size_t{1} << 30);

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  [[nodiscard]] std::unique_ptr<Transfer> send(std::span<const std::byte> message, int to,
                                               int tag) override;
  [[nodiscard]] std::unique_ptr<Transfer> receive(std::span<std::byte> message, int from,
                                                  int tag) override;
  [[nodiscard]] std::unique_ptr<Transfer> broadcast(std::span<std::byte> message,
                                                    int root) override;
  void gather(std::span<const std::byte> mine, std::span<std::byte> all) override;

 private:
  nb::object comm_;
  nb::object module_;
  std::size_t piece_bytes_;
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace heed::python
