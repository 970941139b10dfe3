// The verbs of `heed train`.
#pragma once

#include <CLI/App.hpp>

namespace heed::cli {

void add_train_copy(CLI::App& train);
void add_train_lm(CLI::App& train);
void add_train_translate(CLI::App& train);

}  // namespace heed::cli
