// The arguments of all comparisons that train models, and their evaluation.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "heed/viz/figure.h"

namespace heed::cli {

// A setting that --quick makes smaller unless the user gives it.
struct QuickNumber {
  std::int64_t* setting;  // holds the value without --quick
  std::int64_t quick;
  std::optional<std::int64_t> given = std::nullopt;
};

struct ComparisonArguments {
  std::deque<QuickNumber> quick_numbers;
  std::string text;
  std::string out;
  bool is_quick = false;
  bool is_dark = false;
  bool as_json = false;
  int threads = 0;
};

// Adds --text, --quick, --out, --dark, --json and --threads.
void add_comparison_arguments(CLI::App& verb, ComparisonArguments& arguments);

struct OptionText {
  std::string name;
  std::string text;
};

// `setting` and `arguments` must outlive the verb.
void add_quick_number(CLI::App& verb, const OptionText& option, ComparisonArguments& arguments,
                      const QuickNumber& number);

// Stores the given values in the settings, or those of --quick.
void choose_quick_numbers(const ComparisonArguments& arguments);

// The results of a comparison.
struct Compared {
  std::string markdown;
  nlohmann::json json;
  std::function<Figure(Theme)> figure;
};

// Reserves --out, calls `compare` with the text, prints the table or JSON, and writes the picture.
void run_comparison(const ComparisonArguments& arguments,
                    const std::function<Compared(std::string_view text)>& compare);

}  // namespace heed::cli
