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
  add_bench_seq2seq(*verb);
  add_bench_storage(*verb);
  add_bench_model(*verb);
  add_bench_distributed(*verb);
  for (CLI::App* measured : verb->get_subcommands({})) measured->group("What to measure");
  verb->footer(
      "Times are medians over repetitions; 'spread' is half the distance of their\n"
      "quartiles. What is compared takes turns, repetition by repetition, so that a\n"
      "disturbance of the machine meets all alike. The peak is the undisturbed rate of\n"
      "fused multiply-adds in the same run, in the vectors that attention uses; twice\n"
      "that where bfloat16 is multiplied in pairs, 16 times in tiles.");
}

}  // namespace heed::cli
