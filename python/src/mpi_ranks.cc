#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "call.h"
#include "distributed/messages.h"
#include "ranks.h"

namespace heed::python {

namespace {

// The time that a message has to arrive after an exception.
constexpr std::chrono::seconds kPatience{2};
constexpr std::chrono::microseconds kBetweenLooks{200};

template <class... Args>
nb::object call_method(nb::handle object, const char* name, const Args&... args) {
  return call_function(object.attr(name), nb::make_tuple(args...));
}

// Calls use() with the GIL. An exception becomes a CommunicationError with `what` and the
// exception's text.
template <class Use>
void with_mpi(const std::string& what, const Use& use) {
  const Locked locked;
  try {
    use();
  } catch (const nb::python_error& error) {
    throw CommunicationError(fmt::format("{}: {}", what, text_of(error)));
  }
}

// Memory in the form that mpi4py takes. An empty message gets memory that is not null.
nb::object buffer_of(const std::byte* data, std::size_t size, int flags) {
  static char nothing = 0;
  char* const memory =
      size == 0 ? &nothing : const_cast<char*>(reinterpret_cast<const char*>(data));
  PyObject* view = PyMemoryView_FromMemory(memory, static_cast<Py_ssize_t>(size), flags);
  if (view == nullptr) throw nb::python_error();
  return nb::steal(view);
}
nb::object buffer_of(std::span<const std::byte> message) {
  return buffer_of(message.data(), message.size(), PyBUF_READ);
}
nb::object buffer_of(std::span<std::byte> message) {
  return buffer_of(message.data(), message.size(), PyBUF_WRITE);
}

class Mpi4pyTransfer final : public Transfer {
 public:
  enum class Kind : std::uint8_t { kSend, kReceive, kBroadcast };

  // @param what the operation, for errors: "rank 2: send to rank 1 with tag 3"
  Mpi4pyTransfer(nb::handle comm, nb::handle module, Kind kind, std::string what)
      : comm_(comm), module_(module), kind_(kind), what_(std::move(what)) {}

  ~Mpi4pyTransfer() override {
    if (std::uncaught_exceptions() > num_exceptions_ || !problem_.empty()) {
      leave();
    } else {
      settle([](Piece& piece) { call_method(piece.request, "Wait"); });
    }
    const Locked locked;
    pieces_.clear();
  }

  // Starts one more piece with begin(), which returns its request.
  template <class Begin>
  void start(std::size_t bytes, const Begin& begin) {
    with_mpi(what_, [&] { pieces_.push_back({begin(), bytes}); });
  }

  void wait() override {
    if (!problem_.empty()) throw CommunicationError(problem_);
    if (num_done_ == pieces_.size()) return;
    try {
      with_mpi(what_, [&] {
        while (num_done_ < pieces_.size()) wait_for(pieces_[num_done_++]);
      });
    } catch (const CommunicationError& error) {
      problem_ = error.what();
      throw;
    }
  }

  bool is_done() override {
    if (!problem_.empty() || num_done_ == pieces_.size()) return true;
    try {
      with_mpi(what_, [&] {
        while (num_done_ < pieces_.size() && is_there(pieces_[num_done_])) ++num_done_;
      });
    } catch (const CommunicationError& error) {
      problem_ = error.what();
      return true;
    }
    return num_done_ == pieces_.size();
  }

 private:
  struct Piece {
    nb::object request;
    std::size_t bytes;
  };

  void wait_for(const Piece& piece) const {
    const nb::object status = call_method(module_, "Status");
    call_method(piece.request, "Wait", status);
    check_length(piece, status);
  }

  // Tests a piece without waiting.
  bool is_there(const Piece& piece) const {
    const nb::object status = call_method(module_, "Status");
    if (!nb::cast<bool>(call_method(piece.request, "Test", status))) return false;
    check_length(piece, status);
    return true;
  }

  void check_length(const Piece& piece, const nb::object& status) const {
    if (kind_ != Kind::kReceive) return;
    const auto count = nb::cast<std::uint64_t>(call_method(status, "Get_count"));
    if (count == piece.bytes) return;
    throw CommunicationError(
        fmt::format("{}: {} bytes came, expected {}", what_, count, piece.bytes));
  }

  // Calls use(piece) for all pieces that are not done, ignoring errors.
  template <class Use>
  void settle(const Use& use) noexcept {
    const Locked locked;
    while (num_done_ < pieces_.size()) {
      try {
        use(pieces_[num_done_++]);
      } catch (...) {  // There is no caller to report it to.
      }
    }
  }

  void leave() noexcept {
    if (kind_ == Kind::kReceive) {
      return settle([](Piece& piece) {
        call_method(piece.request, "Cancel");
        call_method(piece.request, "Wait");
      });
    }
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!have_ended()) {
      if (std::chrono::steady_clock::now() > end) abort();
      std::this_thread::sleep_for(kBetweenLooks);
    }
  }

  bool have_ended() noexcept {
    const Locked locked;
    try {
      while (num_done_ < pieces_.size()) {
        if (!nb::cast<bool>(call_method(pieces_[num_done_].request, "Test"))) return false;
        ++num_done_;
      }
    } catch (...) {  // Waiting longer would not help.
    }
    return true;
  }

  // Ends all ranks, because MPI may still read the memory of a message.
  [[noreturn]] void abort() const noexcept {
    static_cast<void>(std::fprintf(
        stderr, "heed: %s: an exception left while this was under way, and nobody took it\n",
        what_.c_str()));
    static_cast<void>(std::fflush(stderr));
    const Locked locked;
    try {
      call_method(comm_, "Abort", EXIT_FAILURE);
    } catch (...) {  // The process ends in any case.
    }
    std::abort();
  }

  nb::handle comm_;
  nb::handle module_;
  Kind kind_;
  std::string what_;
  std::vector<Piece> pieces_;
  std::size_t num_done_ = 0;
  std::string problem_;
  int num_exceptions_ = std::uncaught_exceptions();
};

// Starts each piece of a message with begin(buffer of the piece).
template <class Byte, class Begin>
std::unique_ptr<Transfer> start_pieces(std::unique_ptr<Mpi4pyTransfer> transfer,
                                       std::span<Byte> message, std::size_t piece_bytes,
                                       const Begin& begin) {
  for_each_piece(message, piece_bytes, [&](std::span<Byte> piece) {
    transfer->start(piece.size(), [&] { return begin(buffer_of(piece)); });
  });
  return transfer;
}

}  // namespace

MpiRanks::MpiRanks(nb::object comm, nb::object module, std::size_t piece_bytes)
    : comm_(std::move(comm)), module_(std::move(module)), piece_bytes_(piece_bytes) {
  check_piece_bytes("MpiRanks", piece_bytes);
  with_mpi("MpiRanks", [&] {
    rank_ = nb::cast<int>(call_method(comm_, "Get_rank"));
    size_ = nb::cast<int>(call_method(comm_, "Get_size"));
  });
}

std::unique_ptr<Transfer> MpiRanks::send(std::span<const std::byte> message, int to, int tag) {
  check_peer("send", "to", to, rank_, size_);
  check_tag("send", tag);
  auto transfer = std::make_unique<Mpi4pyTransfer>(
      comm_, module_, Mpi4pyTransfer::Kind::kSend,
      fmt::format("rank {}: send to rank {} with tag {}", rank_, to, tag));
  return start_pieces(std::move(transfer), message, piece_bytes_, [&](const nb::object& buffer) {
    return call_method(comm_, "Isend", buffer, to, tag);
  });
}

std::unique_ptr<Transfer> MpiRanks::receive(std::span<std::byte> message, int from, int tag) {
  check_peer("receive", "from", from, rank_, size_);
  check_tag("receive", tag);
  auto transfer = std::make_unique<Mpi4pyTransfer>(
      comm_, module_, Mpi4pyTransfer::Kind::kReceive,
      fmt::format("rank {}: receive from rank {} with tag {}", rank_, from, tag));
  return start_pieces(std::move(transfer), message, piece_bytes_, [&](const nb::object& buffer) {
    return call_method(comm_, "Irecv", buffer, from, tag);
  });
}

std::unique_ptr<Transfer> MpiRanks::broadcast(std::span<std::byte> message, int root) {
  check_root("broadcast", "root", root, size_);
  auto transfer =
      std::make_unique<Mpi4pyTransfer>(comm_, module_, Mpi4pyTransfer::Kind::kBroadcast,
                                       fmt::format("rank {}: broadcast from rank {}", rank_, root));
  return start_pieces(std::move(transfer), message, piece_bytes_, [&](const nb::object& buffer) {
    return call_method(comm_, "Ibcast", buffer, root);
  });
}

void MpiRanks::gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  check_gather(mine.size(), all.size(), size_);
  if (mine.empty()) return;
  const auto own = all.subspan(static_cast<std::size_t>(rank_) * mine.size(), mine.size());
  std::memmove(own.data(), mine.data(), mine.size());
  if (mine.size() > piece_bytes_) return gather_by_broadcasts(*this, all);
  with_mpi(fmt::format("rank {}: gather", rank_),
           [&] { call_method(comm_, "Allgather", module_.attr("IN_PLACE"), buffer_of(all)); });
}

}  // namespace heed::python
