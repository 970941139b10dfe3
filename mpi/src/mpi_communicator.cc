#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "distributed/messages.h"
#include "heed/mpi.h"
#include "mpi_call.h"
#include "mpi_transfer.h"

namespace heed { inline namespace v0 {

namespace {

void check_initialized() {
  int is_initialized = 0;
  int is_finalized = 0;
  MPI_Initialized(&is_initialized);
  MPI_Finalized(&is_finalized);
  if (is_initialized != 0 && is_finalized == 0) return;
  throw CommunicationError(
      fmt::format("MpiCommunicator: MPI is {}, expected between MPI_Init and "
                  "MPI_Finalize",
                  is_finalized != 0 ? "finalised" : "not initialised"));
}

// MPI's functions take writable memory, but only read a sender's.
std::span<std::byte> read_only(std::span<const std::byte> message) {
  return {const_cast<std::byte*>(message.data()), message.size()};
}

}  // namespace

class MpiCommunicator::Impl {
 public:
  Impl(MPI_Comm ranks, const MpiOptions& options) : piece_bytes_(options.piece_bytes) {
    check_piece_bytes("MpiCommunicator", piece_bytes_);
    check_initialized();
    check_mpi(MPI_Comm_dup(ranks, &ranks_), "MPI_Comm_dup");
    check_mpi(MPI_Comm_set_errhandler(ranks_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    check_mpi(MPI_Comm_rank(ranks_, &rank_), "MPI_Comm_rank");
    check_mpi(MPI_Comm_size(ranks_, &size_), "MPI_Comm_size");
  }

  ~Impl() {
    int is_finalized = 0;
    MPI_Finalized(&is_finalized);
    // Freeing is collective: a rank that an exception leaves would wait for the others.
    if (is_finalized == 0 && std::uncaught_exceptions() == num_exceptions_) MPI_Comm_free(&ranks_);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Starts each piece with start(piece, bytes, request).
  template <class Start>
  std::unique_ptr<Transfer> transfer(MpiTransfer::Kind kind, std::span<std::byte> message,
                                     std::string what, const Start& start) const {
    auto transfer = std::make_unique<MpiTransfer>(ranks_, kind, std::move(what));
    for_each_piece(message, piece_bytes_, [&](std::span<std::byte> piece) {
      MPI_Request* const request = transfer->add(piece.size());
      transfer->check(start(piece.data(), static_cast<int>(piece.size()), request));
    });
    return transfer;
  }

  std::unique_ptr<Transfer> send(std::span<const std::byte> message, int to, int tag) const {
    check_peer("send", "to", to, rank_, size_);
    check_tag("send", tag);
    return transfer(MpiTransfer::Kind::kSend, read_only(message),
                    fmt::format("rank {}: send to rank {} with tag {}", rank_, to, tag),
                    [&](std::byte* piece, int bytes, MPI_Request* request) {
                      return MPI_Isend(piece, bytes, MPI_BYTE, to, tag, ranks_, request);
                    });
  }

  std::unique_ptr<Transfer> receive(std::span<std::byte> message, int from, int tag) const {
    check_peer("receive", "from", from, rank_, size_);
    check_tag("receive", tag);
    return transfer(MpiTransfer::Kind::kReceive, message,
                    fmt::format("rank {}: receive from rank {} with tag {}", rank_, from, tag),
                    [&](std::byte* piece, int bytes, MPI_Request* request) {
                      return MPI_Irecv(piece, bytes, MPI_BYTE, from, tag, ranks_, request);
                    });
  }

  std::unique_ptr<Transfer> broadcast(std::span<std::byte> message, int root) const {
    check_root("broadcast", "root", root, size_);
    return transfer(MpiTransfer::Kind::kBroadcast, message,
                    fmt::format("rank {}: broadcast from rank {}", rank_, root),
                    [&](std::byte* piece, int bytes, MPI_Request* request) {
                      return MPI_Ibcast(piece, bytes, MPI_BYTE, root, ranks_, request);
                    });
  }

  void gather(std::span<const std::byte> mine, std::span<std::byte> all) const {
    check_gather(mine.size(), all.size(), size_);
    if (mine.empty()) return;
    const auto own = all.subspan(static_cast<std::size_t>(rank_) * mine.size(), mine.size());
    std::memmove(own.data(), mine.data(), mine.size());
    if (mine.size() > piece_bytes_) return gather_by_broadcasts(*this, all);
    const auto bytes = static_cast<int>(mine.size());
    check_mpi(
        MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all.data(), bytes, MPI_BYTE, ranks_),
        fmt::format("rank {}: gather", rank_));
  }

 private:
  std::size_t piece_bytes_;
  MPI_Comm ranks_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  int num_exceptions_ = std::uncaught_exceptions();
};

MpiCommunicator::MpiCommunicator(MPI_Comm ranks, const MpiOptions& options)
    : impl_(std::make_unique<Impl>(ranks, options)) {}
MpiCommunicator::~MpiCommunicator() = default;

int MpiCommunicator::rank() const { return impl_->rank(); }
int MpiCommunicator::size() const { return impl_->size(); }

std::unique_ptr<Transfer> MpiCommunicator::send(std::span<const std::byte> message, int to,
                                                int tag) {
  return impl_->send(message, to, tag);
}
std::unique_ptr<Transfer> MpiCommunicator::receive(std::span<std::byte> message, int from,
                                                   int tag) {
  return impl_->receive(message, from, tag);
}
std::unique_ptr<Transfer> MpiCommunicator::broadcast(std::span<std::byte> message, int root) {
  return impl_->broadcast(message, root);
}
void MpiCommunicator::gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  impl_->gather(mine, all);
}

}}  // namespace heed::v0
