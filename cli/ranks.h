// The command as one of several processes that mpirun started: some verbs divide their work.
#pragma once

#include <functional>
#include <string>

#include "heed/distributed/communicator.h"

namespace heed::cli {

// The ranks that this process is one of, while a verb runs on them; null: it is alone.
Communicator* ranks();

// Whether this process is the one that reads, writes and prints.
bool is_first_rank();

// Calls `part` on the first rank. Throws on all ranks if it throws.
void on_first_rank(const std::function<void()>& part);

// What `read` returns on the first rank, on all. Throws on all ranks if it throws.
std::string from_first_rank(const std::function<std::string()>& read);

// Throws UsageError where there are several ranks: `verb` would do the same on each.
void refuse_ranks(const std::string& verb);

// Whether several processes were started together, and the arguments name a verb that divides its
// work. All other verbs run in each process on their own.
bool is_divided(int argc, char** argv);

// Runs the command where is_divided(). `command` gets a function to do its work in, within which
// ranks() are there and only the first one prints, and which throws on all ranks if the work throws
// on any; it returns an exit code after having said what was thrown. Returns the greatest of all
// ranks. Throws CommunicationError where MPI does not start, or heed was built without.
using DivideWork = std::function<void(const std::function<void()>& work)>;
int run_divided(const std::function<int(const DivideWork&)>& command);

namespace detail {

// For the time of a run.
void set_ranks(Communicator* ranks);

}  // namespace detail

}  // namespace heed::cli
