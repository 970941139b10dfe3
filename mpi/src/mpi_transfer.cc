#include "mpi_transfer.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "heed/core/cancellation.h"
#include "mpi_call.h"

namespace heed { inline namespace v0 {

namespace {

using std::chrono::steady_clock;

// The time that a message has to arrive after an exception.
constexpr std::chrono::seconds kPatience{2};
constexpr std::chrono::microseconds kBetweenLooks{200};

}  // namespace

void abort_mpi(MPI_Comm ranks, std::string_view text) {
  static_cast<void>(
      std::fprintf(stderr, "heed: %.*s\n", static_cast<int>(text.size()), text.data()));
  static_cast<void>(std::fflush(stderr));
  MPI_Abort(ranks, EXIT_FAILURE);
  std::abort();
}

MpiTransfer::MpiTransfer(MPI_Comm ranks, Kind kind, std::string what)
    : ranks_(ranks), kind_(kind), what_(std::move(what)) {}

MpiTransfer::~MpiTransfer() {
  if (std::uncaught_exceptions() > num_exceptions_ || !problem_.empty()) {
    leave();
  } else if (num_done_ < requests_.size()) {
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
  }
}

MPI_Request* MpiTransfer::add(std::size_t expected_bytes) {
  expected_bytes_.push_back(expected_bytes);
  requests_.push_back(MPI_REQUEST_NULL);
  return &requests_.back();
}

void MpiTransfer::check(int error) const { check_mpi(error, what_); }

void MpiTransfer::wait() {
  if (!problem_.empty()) throw CommunicationError(problem_);
  try {
    while (num_done_ < requests_.size()) wait_for(num_done_);
  } catch (const CommunicationError& error) {
    problem_ = error.what();
    throw;
  }
}

bool MpiTransfer::is_done() {
  try {
    while (problem_.empty() && num_done_ < requests_.size()) {
      if (!is_there(num_done_)) return false;
    }
  } catch (const CommunicationError& error) {
    problem_ = error.what();
  }
  return true;
}

// Waits for a piece, which is the first that is not done.
void MpiTransfer::wait_for(std::size_t piece) {
  if (Cancellation::current() != nullptr) {
    check_cancelled();
    while (!is_there(piece)) {
      std::this_thread::yield();
      check_cancelled();
    }
    return;
  }
  MPI_Status status = {};
  const int error = MPI_Wait(&requests_[piece], &status);
  ++num_done_;
  check(error);
  if (kind_ == Kind::kReceive) check_length(piece, status);
}

// Tests a piece, which is the first that is not done, without waiting.
bool MpiTransfer::is_there(std::size_t piece) {
  MPI_Status status = {};
  int is_there = 0;
  const int error = MPI_Test(&requests_[piece], &is_there, &status);
  if (error != MPI_SUCCESS || is_there != 0) ++num_done_;
  check(error);
  if (is_there != 0 && kind_ == Kind::kReceive) check_length(piece, status);
  return is_there != 0;
}

void MpiTransfer::check_length(std::size_t piece, MPI_Status& status) const {
  int count = 0;
  check(MPI_Get_count(&status, MPI_BYTE, &count));
  if (static_cast<std::size_t>(count) == expected_bytes_[piece]) return;
  throw CommunicationError(
      fmt::format("{}: {} bytes came, expected {}", what_, count, expected_bytes_[piece]));
}

bool MpiTransfer::has_ended() noexcept {
  int are_done = 0;
  const int error = MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &are_done,
                                MPI_STATUSES_IGNORE);
  return error != MPI_SUCCESS || are_done != 0;
}

void MpiTransfer::leave() noexcept {
  if (kind_ == Kind::kReceive) return withdraw();
  const auto end = steady_clock::now() + kPatience;
  while (!has_ended()) {
    if (steady_clock::now() > end) {
      abort_mpi(ranks_, what_ + ": an exception left while this was under way, and nobody took it");
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

void MpiTransfer::withdraw() noexcept {
  for (MPI_Request& request : requests_) {
    if (request == MPI_REQUEST_NULL) continue;
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

}}  // namespace heed::v0
