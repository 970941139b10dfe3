// heed bench: measures the speed of heed on this machine.
#include "bench/bench_verbs.h"
#include "verbs.h"

namespace heed::cli {

void add_bench(CLI::App& command) {
  CLI::App* verb = command.add_subcommand(
      "bench", "Measure how fast this machine computes attention, and how fast it could");
  verb->require_subcommand(1);
  add_bench_forward(*verb);
  add_bench_backward(*verb);
  add_bench_decode(*verb);
  add_bench_linear(*verb);
  add_bench_tutorial(*verb);
  add_bench_seq2seq(*verb);
  add_bench_storage(*verb);
  add_bench_model(*verb);
  add_bench_distributed(*verb);
  for (CLI::App* measured : verb->get_subcommands({})) measured->group("What to measure");
  verb->footer(
      "Each repetition runs between two probes of the machine: small calls of attention,\n"
      "and a read of 1 MiB. It counts as quiet when both made at least 90 % of the\n"
      "undisturbed calls and read in at most 130 % of the undisturbed time, and when\n"
      "threads waited for a processor for at most 1 % of it; medians are over the quiet\n"
      "ones. The peak is the undisturbed rate of fused multiply-adds in the same run, in\n"
      "the vectors that attention uses; twice that where bfloat16 is multiplied in pairs,\n"
      "16 times in tiles.\n"
      "--baseline FILE compares with what --json printed.");
}

}  // namespace heed::cli
