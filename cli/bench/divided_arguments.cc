#include "bench/divided_arguments.h"

#include <CLI/CLI.hpp>

#include "arguments.h"

namespace heed::cli {

std::vector<DividedCase> DividedArguments::cases(bool is_backward) const {
  std::vector<DividedCase> all;
  for (const std::int64_t length : seq) {
    for (const std::string& by : divide) {
      const AttentionShapes shapes{.num_heads = heads,
                                   .num_kv_heads = kv_heads == 0 ? heads : kv_heads,
                                   .q_len = length,
                                   .kv_len = length,
                                   .head_dim = head_dim,
                                   .value_dim = head_dim};
      all.push_back({is_backward, shapes, mask, divided_by(by)});
    }
  }
  return all;
}

void add_divided_options(CLI::App& verb, DividedArguments& arguments, const char* ranks,
                         const char* seq) {
  constexpr std::int64_t kMost = std::int64_t{1} << 24;
  add_names(verb, "--divide", arguments.divide, {"automatic", "tokens", "heads"}, "automatic");
  add_numbers(verb, "--ranks", arguments.ranks, 1024, ranks);
  add_numbers(verb, "--seq", arguments.seq, kMost, seq);
  const auto add = [&](const char* name, std::int64_t& number, const char* help) {
    return add_option(verb, name, number, help)
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{65536}).description(""));
  };
  add("--heads", arguments.heads, "Heads of the query")->capture_default_str();
  add("--kv-heads", arguments.kv_heads, "Heads of key and value; as the query");
  add("--head-dim", arguments.head_dim, "Dimensions of a head")->capture_default_str();
  add_option(verb, "--mask", arguments.mask, "Which keys are seen")
      ->type_name("MASK")
      ->capture_default_str();
}

}  // namespace heed::cli
