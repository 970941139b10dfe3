// bleu_probe: reads [{"hypotheses": [["a", "b"], …], "references": […], "smooths": true,
// "effective_order": false}, …] from standard input and writes for each case
// {"score": …, "precisions": […], "brevity_penalty": …}.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <vector>

#include "heed/tasks/score.h"

namespace {

nlohmann::json run_case(const nlohmann::json& json) {
  const auto texts = [&](const char* name) {
    return json.at(name).get<std::vector<heed::tasks::Tokens>>();
  };
  const auto bleu = heed::tasks::corpus_bleu(
      texts("hypotheses"), texts("references"),
      {json.at("smooths").get<bool>(), json.at("effective_order").get<bool>()});
  return {{"score", bleu.score},
          {"precisions", bleu.precisions},
          {"brevity_penalty", bleu.brevity_penalty}};
}

}  // namespace

int main() {
  try {
    nlohmann::json results = nlohmann::json::array();
    for (const auto& json : nlohmann::json::parse(std::cin)) results.push_back(run_case(json));
    std::cout << results << '\n';
  } catch (const std::exception& error) {
    fmt::print(stderr, "bleu_probe: {}\n", error.what());
    return 1;
  }
  return 0;
}
