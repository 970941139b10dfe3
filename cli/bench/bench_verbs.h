// The verbs of `heed bench`. Each has one file, which adds its options and its callback.
#pragma once

#include <CLI/App.hpp>

namespace heed::cli {

void add_bench_forward(CLI::App& bench);
void add_bench_backward(CLI::App& bench);
void add_bench_decode(CLI::App& bench);
void add_bench_linear(CLI::App& bench);
void add_bench_seq2seq(CLI::App& bench);
void add_bench_storage(CLI::App& bench);
void add_bench_model(CLI::App& bench);
void add_bench_distributed(CLI::App& bench);

}  // namespace heed::cli
