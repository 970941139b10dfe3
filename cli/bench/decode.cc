// heed bench decode: one query per head against many keys, as in text generation.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "bench/bench_verbs.h"
#include "bench/case_arguments.h"
#include "bench/decode_cache.h"
#include "bench/measurement.h"
#include "bench/read_rate.h"
#include "bench/report.h"
#include "heed/core/parallel.h"
#include "verbs.h"

namespace heed::cli {

namespace {

using Json = nlohmann::ordered_json;

struct DecodeArguments {
  Numbers batch{1}, heads{8}, kv_heads, kv_seq{4096}, head_dim{64, 128}, page{0}, shared_prefix{0},
      threads;
  Names storage{"float32"};
  int repetitions = 10;
  bool as_json = false;
};

// Storages without tensors and shared prefixes need pages: returns 128 where none are given.
std::int64_t page_of(const std::string& storage, std::int64_t page, std::int64_t shared_prefix) {
  const bool needs_pages =
      std::ranges::find(kTensorStorages, storage) == kTensorStorages.end() || shared_prefix > 0;
  return needs_pages && page == 0 ? 128 : page;
}

std::vector<DecodeCase> decode_cases(const DecodeArguments& arguments) {
  std::vector<DecodeCase> cases;
  for (const std::int64_t threads : arguments.threads)
    for (const std::int64_t batch : arguments.batch)
      for (const std::int64_t heads : arguments.heads)
        for (const std::int64_t kv_heads :
             arguments.kv_heads.empty() ? Numbers{heads} : arguments.kv_heads)
          for (const std::int64_t head_dim : arguments.head_dim)
            for (const std::int64_t kv_seq : arguments.kv_seq)
              for (const std::int64_t page : arguments.page)
                for (const std::int64_t prefix : arguments.shared_prefix)
                  for (const std::string& storage : arguments.storage)
                    cases.push_back({storage, batch, heads, kv_heads, kv_seq, head_dim,
                                     page_of(storage, page, prefix), static_cast<int>(threads),
                                     prefix});
  return cases;
}

void check(const DecodeCase& one) {
  if (one.heads % one.kv_heads != 0) {
    throw UsageError(fmt::format("--heads: must be a multiple of --kv-heads, found {} and {}",
                                 one.heads, one.kv_heads));
  }
  if (one.shared_prefix > one.kv_seq) {
    throw UsageError(fmt::format("--shared-prefix: must be at most --kv-seq, found {} and {}",
                                 one.shared_prefix, one.kv_seq));
  }
}

// Measures a plain loop over the same bytes, attention, and attention without shared pages.
Json measure(const DecodeCase& one, int repetitions, Progress& progress) {
  progress.start_case();
  set_num_threads(one.threads);
  const auto cache = make_decode_cache(one);
  const auto read = [&] { read_all(cache->next_parts()); };
  const auto token = [&] { cache->attend(); };
  std::unique_ptr<DecodeCache> apart_cache;
  const auto token_apart = [&] { apart_cache->attend(); };
  std::vector<FunctionRef<void()>> calls{read, token};
  if (one.shared_prefix > 0) {
    DecodeCase other = one;
    other.shared_prefix = 0;
    apart_cache = make_decode_cache(other);
    calls.emplace_back(token_apart);
  }
  const Sampling sampling{
      .threads = one.threads, .repetitions = repetitions, .seconds_per_repetition = 0.02};
  const auto timed = time_in_turn(sampling, calls, progress.counting(repetitions));
  const Timing of_token = summarize(timed[1].seconds);
  const double seconds = of_token.median;
  const auto bytes = static_cast<double>(cache->bytes());
  const double rate = bytes / seconds;
  const double read_rate = bytes / median(timed[0].seconds);
  Json result{{"case",
               {{"storage", one.storage},
                {"batch", one.batch},
                {"heads", one.heads},
                {"kv_heads", one.kv_heads},
                {"kv_seq", one.kv_seq},
                {"head_dim", one.head_dim},
                {"page", one.page},
                {"threads", one.threads},
                {"shared_prefix", one.shared_prefix}}},
              {"gbytes_per_s", rate / 1e9},
              {"read_gbytes_per_s", read_rate / 1e9},
              {"bandwidth_share", rate / read_rate},
              {"us_per_token", seconds * 1e6},
              {"quartiles_us", {of_token.lower_quartile * 1e6, of_token.upper_quartile * 1e6}},
              {"repetitions", repetitions}};
  if (apart_cache) {
    const double apart = median(timed[2].seconds);
    result["us_per_token_apart"] = apart * 1e6;
    result["share_of_apart"] = seconds / apart;
  }
  return result;
}

struct Column {
  const char* title;
  const char* name;  // of a number in a result
  const char* format;
  double factor = 1;
};
constexpr std::array<Column, 11> kColumns{{{"batch", "batch", "{:.0f}"},
                                           {"heads", "heads", "{:.0f}"},
                                           {"kv heads", "kv_heads", "{:.0f}"},
                                           {"kv seq", "kv_seq", "{:.0f}"},
                                           {"head dim", "head_dim", "{:.0f}"},
                                           {"page", "page", "{:.0f}"},
                                           {"threads", "threads", "{:.0f}"},
                                           {"GB/s", "gbytes_per_s", "{:.2f}"},
                                           {"read GB/s", "read_gbytes_per_s", "{:.2f}"},
                                           {"share", "bandwidth_share", "{:.1f} %", 100},
                                           {"us per token", "us_per_token", "{:.1f}"}}};
constexpr std::array<Column, 3> kSharedColumns{{{"shared", "shared_prefix", "{:.0f}"},
                                                {"us apart", "us_per_token_apart", "{:.1f}"},
                                                {"of apart", "share_of_apart", "{:.1f} %", 100}}};

std::string decode_table(const Json& report) {
  const Json& results = report["results"];
  std::vector<Column> columns(kColumns.begin(), kColumns.end());
  if (std::any_of(results.begin(), results.end(),
                  [](const Json& result) { return result.contains("share_of_apart"); })) {
    columns.insert(columns.end(), kSharedColumns.begin(), kSharedColumns.end());
  }
  std::vector<std::vector<std::string>> rows{{"storage"}};
  for (const Column& column : columns) rows.front().emplace_back(column.title);
  rows.front().emplace_back("spread");
  for (const Json& result : results) {
    const Json& one = result["case"];
    std::vector<std::string> row{one["storage"]};
    for (const Column& column : columns) {
      const Json& object = one.contains(column.name) ? one : result;
      row.push_back(object.contains(column.name)
                        ? fmt::format(fmt::runtime(column.format),
                                      column.factor * object[column.name].get<double>())
                        : "");
    }
    row.push_back(spread_cell(result, "quartiles_us"));
    rows.push_back(std::move(row));
  }
  return headline(report["machine"]) + aligned(rows);
}

void run_decode(DecodeArguments arguments) {
  if (arguments.threads.empty()) arguments.threads = {num_threads()};
  const std::vector<DecodeCase> cases = decode_cases(arguments);
  for (const DecodeCase& one : cases) check(one);
  Json results = Json::array();
  {
    Progress progress(static_cast<int>(cases.size()));
    for (const DecodeCase& one : cases) {
      results.push_back(measure(one, arguments.repetitions, progress));
    }
  }
  print_report(arguments.as_json, "decode", {{"machine", machine()}, {"results", results}},
               [](const Json& report) { return decode_table(report); });
}

}  // namespace

void add_bench_decode(CLI::App& bench) {
  CLI::App* verb = bench.add_subcommand(
      "decode", "Measure one query of each head against many keys, beside a plain read of these");
  auto arguments = std::make_shared<DecodeArguments>();
  constexpr std::int64_t kMost = std::int64_t{1} << 20;
  add_numbers(*verb, "--batch", arguments->batch, kMost, "Sequences; 1");
  add_numbers(*verb, "--heads", arguments->heads, kMost, "Heads of the query; 8");
  add_numbers(*verb, "--kv-heads", arguments->kv_heads, kMost,
              "Heads of key and value; as the query");
  add_numbers(*verb, "--kv-seq", arguments->kv_seq, kMost, "How many keys; 4096");
  add_numbers(*verb, "--head-dim", arguments->head_dim, 65536, "64,128");
  add_names(*verb, "--storage", arguments->storage, kDecodeStorages,
            "How keys and values are stored; float32");
  add_list(*verb, "--page", arguments->page, CLI::IsMember({0, 16, 32, 64, 128}),
           "Positions of a page of a KvPool; 0, which int8, int4 and --shared-prefix take for 128: "
           "one tensor");
  add_list(*verb, "--shared-prefix", arguments->shared_prefix, CLI::Range(std::int64_t{0}, kMost),
           "Keys that all sequences share, beside the same where they share none; 0");
  add_numbers(*verb, "--threads", arguments->threads, 1024, "All the machine has, if not given");
  add_option(*verb, "--repeat", arguments->repetitions,
             "How often each case is measured; one repetition is as many tokens as fill 20 ms")
      ->check(CLI::Range(1, 1000000).description(""))
      ->type_name("N")
      ->capture_default_str();
  add_report_options(*verb, arguments->as_json);
  verb->footer(
      "Example:\n"
      "  heed bench decode --kv-seq 4096,16384 --storage float32,bfloat16 --threads 1\n\n"
      "Options that take a list measure every combination. A token is one query of every\n"
      "head and sequence. GB/s count the bytes of keys and values; 'read' is what a plain\n"
      "loop reads of the same memory with as many threads, in turn with attention. From\n"
      "4096 keys on there are as many copies of keys and values, taken in turn, as exceed\n"
      "the last cache; fewer keys are in it. Bytes that sequences share count once.");
  verb->callback([arguments] { run_decode(*arguments); });
}

}  // namespace heed::cli
