// heed bench: how fast heed is here.
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
      "Each repetition runs between two probes of the machine: a millisecond of fused\n"
      "multiply-adds in the vectors that attention uses, and a small matrix product. It\n"
      "counts as quiet when both probes came within 5 % of their best; medians are over\n"
      "the quiet ones. The peak is the best rate of multiply-adds in the same run.");
}

}  // namespace heed::cli
