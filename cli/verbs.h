// The verbs of the command. Each has one file, which adds its options and its callback to the
// command.
#pragma once

#include <CLI/App.hpp>

namespace heed::cli {

void add_info(CLI::App& command);
void add_lesson(CLI::App& command);

}  // namespace heed::cli
