// Included by the source of main() alone: a function of the program.
#pragma once

// Tells OpenBLAS to start one thread; it calls this function before main(). heed divides products
// among its own threads. Where memory is scarce, a thread that OpenBLAS starts would ask for memory
// again and again, and a command that multiplies nothing would never end. Weak, because an OpenBLAS
// that is linked statically defines the function itself.
extern "C" [[gnu::weak, gnu::visibility("default")]] int openblas_num_threads_env() { return 1; }
