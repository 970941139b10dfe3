// Runs the command as one of several processes that mpirun started; some verbs divide their work.
#pragma once

#include <functional>
#include <string>

#include "heed/distributed/communicator.h"

namespace heed::cli {

// Returns the ranks to which this process belongs while a verb runs on them; null if it runs alone.
Communicator* ranks();

// True if this process is the one that reads, writes and prints.
bool is_first_rank();

// Calls `part` on the first rank. If it throws, all ranks throw.
void on_first_rank(const std::function<void()>& part);

// Calls `read` on the first rank and returns its result on all. If it throws, all ranks throw.
std::string from_first_rank(const std::function<std::string()>& read);

// Throws UsageError where there are several ranks: `verb` would do the same work on each.
void refuse_ranks(const std::string& verb);

// True if several processes were started together and the arguments name a verb that divides its
// work. Other verbs run independently in each process.
bool is_divided(int argc, char** argv);

// Runs the command where is_divided(). `command` receives a function to which it passes its work.
// While the work runs, ranks() is set and only the first rank prints; if the work throws on one
// rank, it throws on all. `command` prints exceptions and returns an exit code. Returns the largest
// exit code of all ranks. Throws CommunicationError where MPI does not start, or heed was built
// without it.
using DivideWork = std::function<void(const std::function<void()>& work)>;
int run_divided(const std::function<int(const DivideWork&)>& command);

namespace detail {

// Set for the time of a run.
void set_ranks(Communicator* ranks);

}  // namespace detail

}  // namespace heed::cli
