// Calls of MPI, with errors as exceptions.
#pragma once

#include <fmt/format.h>
#include <mpi.h>

#include <string>
#include <string_view>

#include "heed/distributed/communicator.h"

namespace heed { inline namespace v0 {

// The text of the MPI library, e.g. "MPI_ERR_TRUNCATE: message truncated".
inline std::string mpi_text(int error) {
  char text[MPI_MAX_ERROR_STRING + 1] = {};
  int length = 0;
  if (MPI_Error_string(error, text, &length) != MPI_SUCCESS) return fmt::format("error {}", error);
  return {text, static_cast<std::size_t>(length)};
}

// @param what the operation: "rank 2: send to rank 1"
inline void check_mpi(int error, std::string_view what) {
  if (error == MPI_SUCCESS) return;
  throw CommunicationError(fmt::format("{}: {}", what, mpi_text(error)));
}

// Ends all ranks. The text should name the rank.
[[noreturn]] void abort_mpi(MPI_Comm ranks, std::string_view text);

}}  // namespace heed::v0
