// heed info: the features of this machine and which of them heed uses.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "arguments.h"
#include "heed/attention.h"
#include "heed/core/config.h"
#include "heed/core/parallel.h"
#include "heed/core/processor.h"
#include "heed/nn/blas.h"
#include "verbs.h"

namespace heed::cli {

namespace {

void print_info(bool as_json) {
  const auto instruction_sets = supported_instruction_sets();
  if (as_json) {
    std::cout << nlohmann::json{{"version", version()},
                                {"instruction_sets", instruction_sets},
                                {"attention_targets", attention_targets()},
                                {"attention_target", attention_target()},
                                {"bits", attention_bits()},
                                {"bits_of_bfloat16", attention_bits(Precision::kFast)},
                                {"threads", num_threads()},
                                {"blas", blas_description()}}
                     .dump(2)
              << '\n';
    return;
  }
  std::cout << fmt::format("heed {}\n", version())
            << fmt::format("instruction sets  {}\n", fmt::join(instruction_sets, ", "))
            << fmt::format("attention by      {} (of {})\n", attention_target(),
                           fmt::join(attention_targets(), ", "))
            << fmt::format("bits              {}, products of bfloat16 {}\n", attention_bits(),
                           attention_bits(Precision::kFast))
            << fmt::format("threads           {}\n", num_threads())
            << fmt::format("BLAS              {}\n", blas_description());
}

}  // namespace

void add_info(CLI::App& command) {
  CLI::App* verb = command.add_subcommand(
      "info", "Show the version, the instruction sets found, the threads and the BLAS library");
  auto as_json = std::make_shared<bool>(false);
  add_flag(*verb, "--json", *as_json, "Print one JSON object");
  verb->callback([as_json] { print_info(*as_json); });
}

}  // namespace heed::cli
