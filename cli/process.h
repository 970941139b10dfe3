// What the system and the environment give the command, looked at before anything is computed.
#pragma once

namespace heed::cli {

// A write beyond the largest file that is allowed (`ulimit -f`) fails, and is reported as any
// other, instead of ending the process.
void report_large_files() noexcept;

// Throws where no verb could compute: InvalidArgument where a variable of the environment has a
// value that it cannot have, std::runtime_error where the stack is too small.
void check_process();

}  // namespace heed::cli
