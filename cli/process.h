// Checks the limits and environment of the process before anything is computed.
#pragma once

namespace heed::cli {

// Makes a write beyond the file size limit (`ulimit -f`) fail with an error instead of ending the
// process.
void report_large_files() noexcept;

// Throws where no verb could compute: InvalidArgument for an environment variable with an invalid
// value, std::runtime_error where the stack is too small.
void check_process();

}  // namespace heed::cli
