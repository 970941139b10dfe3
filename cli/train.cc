// heed train: trains models with attention.
#include "verbs.h"

namespace heed::cli {

void add_train(CLI::App& command) {
  CLI::App* verb = command.add_subcommand("train", "Train small models from scratch");
  verb->require_subcommand(1);
  add_train_copy(*verb);
  add_train_lm(*verb);
  add_train_translate(*verb);
  for (CLI::App* task : verb->get_subcommands({})) task->group("What to learn");
  verb->footer(
      "Progress goes to standard error. With --save, Ctrl-C finishes the step, saves and\n"
      "exits with code 130, and --resume goes on; a run that is killed at any moment\n"
      "resumes from its last checkpoint, and ends with the same bits either way.");
}

}  // namespace heed::cli
