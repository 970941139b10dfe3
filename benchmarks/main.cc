// heed_measure: measurements for those who work on heed, beside those of `heed bench`.
#include <CLI/App.hpp>

#include "blas_kernels.h"
#include "measure_verbs.h"
#include "one_blas_thread.h"
#include "program.h"

// NOLINTNEXTLINE(bugprone-exception-escape): when not even the error can be printed, so be it
int main(int argc, char** argv) {
  heed::cli::occupy_standard_streams();
  heed::cli::choose_blas_kernels();
  CLI::App command("heed_measure measures what `heed bench` does not.", "heed_measure");
  return heed::cli::report_errors(command, [&] {
    heed::cli::prepare(command);
    heed::cli::add_parts(command);
    heed::cli::add_memory(command);
    heed::cli::add_cluster(command);
    heed::cli::add_masks(command);
    return heed::cli::run_verbs(command, argc, argv);
  });
}
