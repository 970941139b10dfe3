// heed run: attention on arrays from files.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arguments.h"
#include "array_attention.h"
#include "heed/attention/mask.h"
#include "heed/viz/terminal.h"
#include "io/npy_stream.h"
#include "mask_argument.h"
#include "output_files.h"
#include "verbs.h"

namespace heed::cli {

namespace {

struct RunArguments {
  std::string query, key, value, out;
  PictureArguments picture;
  std::vector<std::string> masks;
  std::string mask_means;
  std::optional<double> scale;
  double softcap = 0;
  std::int64_t query_offset = 0;
  std::string weights, lse;
  bool as_json = false;
};

bool is_array(std::string_view mask) { return mask.ends_with(".npy"); }

// Returns the one mask that is an array; null if all are expressions.
const std::string* array_of(const std::vector<std::string>& masks) {
  const auto found = std::ranges::find_if(masks, is_array);
  return found == masks.end() ? nullptr : &*found;
}

void check_usage(const RunArguments& arguments) {
  if (std::ranges::count_if(arguments.masks, is_array) > 1) {
    throw UsageError("--mask names two arrays, expected one at most: join them in one file");
  }
  const bool has_array = array_of(arguments.masks) != nullptr;
  if (has_array && arguments.mask_means.empty()) {
    throw UsageError(
        "--mask needs --mask-means: libraries disagree on what true means in a mask, so it is "
        "never guessed. allow: true or 1 may attend; block: true or 1 may not attend; additive: "
        "numbers that are added to the scores, -inf hides");
  }
  if (!has_array && !arguments.mask_means.empty()) {
    throw UsageError("--mask-means says how to read an array, but no --mask ends in .npy");
  }
}

ArrayProblem read_problem(const RunArguments& arguments) {
  ArrayProblem problem;
  for (const std::string& mask : arguments.masks) {
    if (!is_array(mask)) {
      problem.mask = problem.mask & parse_mask("--mask", mask);
      continue;
    }
    ArrayMask from_file = read_mask(mask, arguments.mask_means);
    problem.mask = problem.mask & from_file.mask;
    problem.bias = std::move(from_file.added);
  }
  problem.query = read_operand(arguments.query);
  problem.key = read_operand(arguments.key);
  problem.value = read_operand(arguments.value);
  problem.scale = arguments.scale;
  problem.softcap = arguments.softcap;
  problem.query_offset = arguments.query_offset;
  problem.keeps_weights = !arguments.weights.empty() || is_picture(arguments.out);
  return problem;
}

void reserve_files(const RunArguments& arguments, OutputFiles& files) {
  files.protect("--query", arguments.query);
  files.protect("--key", arguments.key);
  files.protect("--value", arguments.value);
  if (const std::string* array = array_of(arguments.masks)) files.protect("--mask", *array);
  files.reserve("--out", arguments.out);
  if (!arguments.weights.empty()) files.reserve("--weights", arguments.weights);
  if (!arguments.lse.empty()) files.reserve("--lse", arguments.lse);
}

void write_files(const RunArguments& arguments, const ArrayProblem& problem,
                 const ArrayResult& result, OutputFiles& files) {
  const auto write = [&files](const char* option, const AnyTensor& array) {
    files.write(option, [&array](const auto& sink) { io::write_npy_stream(view(array), sink); });
  };
  if (is_picture(arguments.out)) {
    write_picture(files, "--out", arguments.out, picture_of(problem, result, arguments.picture));
  } else {
    write("--out", result.out);
  }
  if (!arguments.weights.empty()) write("--weights", result.weights);
  if (!arguments.lse.empty()) write("--lse", result.lse);
  files.commit();
}

nlohmann::json description_of(const std::string& path, const AnyTensor& array) {
  const Shape& extents = shape(array);
  return {{"file", path},
          {"shape", std::vector<std::int64_t>(extents.begin(), extents.end())},
          {"dtype", dtype_name(array)}};
}

// Returns the array of --out: the weights for a picture, else the output.
const AnyTensor& written(const RunArguments& arguments, const ArrayResult& result) {
  return is_picture(arguments.out) ? result.weights : result.out;
}

void print_result_json(const RunArguments& arguments, const ArrayProblem& problem,
                       const ArrayResult& result, double seconds) {
  nlohmann::json json{{"query", description_of(arguments.query, problem.query.array)},
                      {"key", description_of(arguments.key, problem.key.array)},
                      {"value", description_of(arguments.value, problem.value.array)},
                      {"mask", problem.mask.description()},
                      {"scale", nullptr},
                      {"softcap", problem.softcap},
                      {"query_offset", problem.query_offset},
                      {"out", description_of(arguments.out, written(arguments, result))},
                      {"seconds", seconds}};
  if (problem.scale) json["scale"] = *problem.scale;
  if (!arguments.weights.empty())
    json["weights"] = description_of(arguments.weights, result.weights);
  if (!arguments.lse.empty()) json["lse"] = description_of(arguments.lse, result.lse);
  constexpr int kOneLine = -1;
  constexpr bool kAsciiOnly = true;  // and a path that is not UTF-8 is replaced, not refused
  std::cout << json.dump(kOneLine, ' ', kAsciiOnly, nlohmann::json::error_handler_t::replace)
            << '\n';
}

void print_summary(const RunArguments& arguments, const ArrayProblem& problem,
                   const ArrayResult& result, double seconds) {
  const auto line = [](std::string_view name, const std::string& text) {
    std::cout << fmt::format("{:8} {}\n", name, sanitize_for_terminal(text));
  };
  line("query", describe(problem.query));
  line("key", describe(problem.key));
  line("value", describe(problem.value));
  line("mask", problem.mask.description());
  line("scale", problem.scale ? fmt::format("{}", *problem.scale) : "1/sqrt(head_dim)");
  if (problem.softcap != 0) line("softcap", fmt::format("{}", problem.softcap));
  line("out", describe({arguments.out, written(arguments, result)}));
  if (!arguments.weights.empty()) line("weights", describe({arguments.weights, result.weights}));
  if (!arguments.lse.empty()) line("lse", describe({arguments.lse, result.lse}));
  line("time", fmt::format("{:.3g} ms", seconds * 1000));
}

void run_attention(const RunArguments& arguments) {
  check_usage(arguments);
  if (is_picture(arguments.out)) check_picture("--out", arguments.out, picture_of({}, {}, {}));
  OutputFiles files;
  reserve_files(arguments, files);
  const ArrayProblem problem = read_problem(arguments);
  const auto start = std::chrono::steady_clock::now();
  const ArrayResult result = attend(problem);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  write_files(arguments, problem, result, files);
  const auto print = arguments.as_json ? print_result_json : print_summary;
  print(arguments, problem, result, elapsed.count());
}

void add_files(CLI::App& verb, RunArguments& arguments) {
  add_option(verb, "--query", arguments.query, "[batch, num_heads, q_len, head_dim]")
      ->required()
      ->type_name("FILE");
  add_option(verb, "--key", arguments.key, "[batch, num_kv_heads, kv_len, head_dim]")
      ->required()
      ->type_name("FILE");
  add_option(verb, "--value", arguments.value, "[batch, num_kv_heads, kv_len, value_dim]")
      ->required()
      ->type_name("FILE");
  add_option(verb, "--out", arguments.out,
             "Written: [batch, num_heads, q_len, value_dim], or a picture of the weights "
             "where it ends in .png, .svg or .pdf, the explorer as .html, or the weights as "
             ".json")
      ->required()
      ->type_name("FILE");
  add_option(verb, "--weights", arguments.weights,
             "Also written: the weights, [batch, num_heads, q_len, kv_len]")
      ->type_name("FILE");
  add_option(verb, "--lse", arguments.lse,
             "Also written: the log of each softmax's denominator, [batch, num_heads, q_len]")
      ->type_name("FILE");
}

void add_mask(CLI::App& verb, RunArguments& arguments) {
  add_option(verb, "--mask", arguments.masks,
             fmt::format("Which keys a query sees: {}; or, with --mask-means, a .npy file whose "
                         "array broadcasts to the weights' shape. Given several times, all must "
                         "allow a key",
                         kMaskHelp))
      ->type_name("MASK|FILE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_option(verb, "--mask-means", arguments.mask_means,
             "What the array says: true or 1 may attend (allow), true or 1 may not (block), "
             "or numbers added to the scores (additive)")
      ->check(one_of({"allow", "block", "additive"}))
      ->type_name("allow|block|additive");
}

void add_numbers(CLI::App& verb, RunArguments& arguments) {
  add_option(verb, "--scale", arguments.scale,
             "Multiplies the scores; 1/sqrt(head_dim) if not given")
      ->type_name("NUMBER");
  add_option(verb, "--softcap", arguments.softcap, "A score s becomes C tanh(s/C)")->type_name("C");
  add_option(verb, "--query-offset", arguments.query_offset,
             "The position of query 0 in the sequence, for the masks")
      ->type_name("N");
}

}  // namespace

void add_run(CLI::App& command) {
  CLI::App* verb = command.add_subcommand("run", "Compute attention on your own .npy arrays");
  auto arguments = std::make_shared<RunArguments>();
  add_files(*verb, *arguments);
  add_mask(*verb, *arguments);
  add_numbers(*verb, *arguments);
  add_picture_options(*verb, arguments->picture);
  add_flag(*verb, "--json", arguments->as_json, "Print one JSON object instead of the summary");
  verb->footer(
      "Example:\n"
      "  heed run --query q.npy --key k.npy --value v.npy --out o.npy \\\n"
      "           --mask m.npy --mask-means allow\n\n"
      "All files are .npy. Query, key and value hold float16, float32 or float64, all the\n"
      "same, in 2 to 4 dimensions; missing leading dimensions are 1. num_heads is a\n"
      "multiple of num_kv_heads. The output has the query's type and number of dimensions;\n"
      "float16 is computed in float32.");
  verb->callback([arguments] { run_attention(*arguments); });
}

}  // namespace heed::cli
