// The verbs of the command. Each has one file, which adds its options and callback to the command.
#pragma once

#include <CLI/App.hpp>
#include <stdexcept>

namespace heed::cli {

// An error in the command line itself, not in a file or sentence that it names.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

void add_demo(CLI::App& command);
void add_explain(CLI::App& command);
void add_mask(CLI::App& command);
void add_run(CLI::App& command);
void add_bench(CLI::App& command);
void add_info(CLI::App& command);
void add_serve(CLI::App& command);
void add_lesson(CLI::App& command);
void add_gallery(CLI::App& command);
void add_train(CLI::App& command);
void add_train_copy(CLI::App& train);
void add_train_lm(CLI::App& train);
void add_train_translate(CLI::App& train);
void add_generate(CLI::App& command);
void add_embed(CLI::App& command);
void add_diagnose(CLI::App& command);
void add_heads(CLI::App& command);
void add_models(CLI::App& command);
void add_translate(CLI::App& command);
void add_evaluate(CLI::App& command);
void add_compare(CLI::App& command);

}  // namespace heed::cli
