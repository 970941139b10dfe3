// What operating systems do differently: processors, threads, forks and memory; platform_files.h
// has files. No other file of the library includes a header of an operating system. CMake compiles
// the files of one system: platform_linux.cc and platform_posix.cc, platform_windows.cc, or
// platform_portable.cc and platform_posix.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "heed/core/function_ref.h"

namespace heed { inline namespace v0 { namespace platform {

// The number of processors that this process may use, at least 1.
int num_processors();

// The processor on which the calling thread runs; negative where threads have none of their own.
int current_processor();

// Processors, one bit each, the first in the lowest bit of the first word.
using ProcessorSet = std::array<std::uint64_t, 16>;
using ThreadHandle = std::thread::native_handle_type;

// The processors on which a thread may run. Both return false where the system refuses or lets no
// program choose.
bool get_processors(ThreadHandle thread, ProcessorSet& processors);
bool set_processors(ThreadHandle thread, const ProcessorSet& processors);

// Calls act(). Threads that it starts get no signals, which are for the program's threads.
void with_signals_blocked(FunctionRef<void()> act);

// When this process forks, calls prepare() before, and one of the others in either process. Returns
// true if it does; where processes do not fork, nothing has to be done.
bool at_fork(void (*prepare)(), void (*in_parent)(), void (*in_child)());

// Asks for large pages in whole large pages of memory that has not been written to.
void advise_huge_pages(void* begin, std::size_t bytes) noexcept;

// True if this process could reserve so much memory now.
bool has_room(std::size_t bytes);

// Asks for the tiles of AMX, which a process may use once the system has granted them. Returns
// false if it does not.
bool request_amx_tiles();

// True if this processor, a 64-bit ARM, multiplies pairs of bfloat16 and the system says so.
bool is_arm_with_bfloat16();

// True if an open file is a terminal.
bool is_terminal(int file);

// The number of columns of a terminal; 0 if it is not known.
int terminal_columns(int file);

}}}  // namespace heed::v0::platform
