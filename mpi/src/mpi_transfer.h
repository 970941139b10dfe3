// An MPI message in transit.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include "heed/core/config.h"
#include "heed/distributed/communicator.h"

namespace heed { inline namespace v0 {

class MpiTransfer final : public Transfer {
 public:
  enum class Kind { kSend, kReceive, kBroadcast };

  // @param what the operation for errors: "rank 2: send to rank 1 with tag 3"
  MpiTransfer(MPI_Comm ranks, Kind kind, std::string what);
  ~MpiTransfer() override;

  // Returns the place for the MPI request of one more piece. A receiver expects this many bytes.
  MPI_Request* add(std::size_t expected_bytes);
  // Checks the result of the MPI call that begins a piece.
  void check(int error) const;
  void wait() override;
  bool is_done() override;

 private:
  void wait_for(std::size_t piece);
  bool is_there(std::size_t piece);
  void check_length(std::size_t piece, MPI_Status& status) const;
  void leave() noexcept;
  void withdraw() noexcept;
  bool has_ended() noexcept;

  MPI_Comm ranks_;
  Kind kind_;
  std::string what_;
  std::vector<MPI_Request> requests_;
  std::vector<std::size_t> expected_bytes_;
  std::size_t num_done_ = 0;
  std::string problem_;
  int num_exceptions_ = std::uncaught_exceptions();
};

}}  // namespace heed::v0
