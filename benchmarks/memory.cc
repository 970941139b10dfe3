// heed_measure memory: the bytes that one call of attention allocates beside its result.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/case_arguments.h"
#include "bench/report.h"
#include "heed/core/parallel.h"
#include "measure_verbs.h"
#include "support/heap.h"

namespace heed::cli {

namespace {

using Json = nlohmann::ordered_json;

std::int64_t extra_bytes(const ReadyCase& ready) {
  ready.call_and_keep();  // makes what is made once: a plan, and an output that is written into
  return testing_support::measure_extra_bytes(ready.call_and_keep);
}

void report_memory(const std::string& pass, const CaseArguments& arguments,
                   ReadyCase (*make_ready)(const ForwardCase&)) {
  auto results = Json::array();
  for (const ForwardCase& one : cases_of(arguments)) {
    set_num_threads(one.threads);
    results.push_back({{"case", describe(one)}, {"extra_bytes", extra_bytes(make_ready(one))}});
  }
  print_report(arguments.as_json, "memory " + pass, {{"machine", machine()}, {"results", results}},
               [](const Json& report) {
                 return case_table(report, {"extra bytes"}, [](const Json& result) {
                   return std::vector{result["extra_bytes"].dump()};
                 });
               });
}

}  // namespace

void add_memory(CLI::App& command) {
  CLI::App* memory = command.add_subcommand(
      "memory", "The bytes that one call of attention allocates beside its result");
  memory->require_subcommand(1);
  const auto add = [&](const std::string& pass, ReadyCase (*make_ready)(const ForwardCase&)) {
    CLI::App* verb =
        memory->add_subcommand(pass, "Of the cases that `heed bench " + pass + "` takes");
    const auto arguments = std::make_shared<CaseArguments>();
    add_case_options(*verb, *arguments, {"float32", "float64", "float16", "bfloat16"});
    add_report_options(*verb, arguments->as_json);
    verb->footer(
        "'extra bytes' is what one call had allocated at most beyond its result, counted in\n"
        "operator new while heed keeps no freed memory.");
    verb->callback([=] { report_memory(pass, *arguments, make_ready); });
  };
  add("forward", make_forward_ready);
  add("backward", make_backward_ready);
}

}  // namespace heed::cli
