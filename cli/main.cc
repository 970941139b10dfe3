// heed: attention on the command line.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>

#include "blas_kernels.h"
#include "one_blas_thread.h"
#include "process.h"
#include "program.h"
#include "ranks.h"
#include "verbs.h"

namespace {

constexpr const char* kPurpose =
    "heed computes attention, the operation at the heart of transformers, and shows it.";

constexpr const char* kExamples =
    "Examples:\n"
    "  heed demo                                watch attention work on one sentence\n"
    "  heed explain \"Time flies like an arrow\"  the same with your words\n"
    "  heed serve                               play with it in a browser\n"
    "  heed run --query q.npy --key k.npy --value v.npy --out o.npy --mask causal\n"
    "                                           compute it on your own arrays\n"
    "  heed lesson softmax                      learn it, step by step\n"
    "  heed train lm --save story               train a model of text, and let it write:\n"
    "  heed generate --model story\n"
    "  heed diagnose --model story              see what its heads have learned\n"
    "  heed train translate --save fr           train a model that translates numbers:\n"
    "  heed translate --model fr \"forty-two\"\n"
    "\n"
    "`heed VERB --help` explains a verb. Exit codes: 0 success, 1 a problem with a file\n"
    "or another input, 2 a mistake on the command line, 130 Ctrl-C during training.";

void add_verbs(CLI::App& command) {
  heed::cli::prepare(command);
  heed::cli::add_demo(command);
  heed::cli::add_explain(command);
  heed::cli::add_mask(command);
  heed::cli::add_serve(command);
  heed::cli::add_run(command);
  heed::cli::add_lesson(command);
  heed::cli::add_gallery(command);
  heed::cli::add_train(command);
  heed::cli::add_models(command);
  heed::cli::add_generate(command);
  heed::cli::add_embed(command);
  heed::cli::add_diagnose(command);
  heed::cli::add_heads(command);
  heed::cli::add_translate(command);
  heed::cli::add_evaluate(command);
  heed::cli::add_compare(command);
  heed::cli::add_bench(command);
  heed::cli::add_info(command);
  for (CLI::App* verb : command.get_subcommands({})) verb->group("Verbs");
  command.footer(kExamples);
}

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): when not even the error can be printed, so be it
int main(int argc, char** argv) {
  using heed::cli::report_errors;
  heed::cli::occupy_standard_streams();
  heed::cli::report_large_files();
  heed::cli::choose_blas_kernels();
  CLI::App command(kPurpose, "heed");
  const auto run_command = [&] {
    add_verbs(command);
    return heed::cli::run_verbs(command, argc, argv);
  };
  if (!heed::cli::is_divided(argc, argv)) return report_errors(command, run_command);
  return report_errors(command, [&] {
    return heed::cli::run_divided([&](const heed::cli::DivideWork& divide) {
      return report_errors(command, [&] {
        int code = 0;
        divide([&] { code = run_command(); });
        return code;
      });
    });
  });
}
