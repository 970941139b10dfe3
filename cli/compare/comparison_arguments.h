// The arguments that comparisons which train models have in common, and what is done with them.
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

// A number that --quick makes smaller, unless it is given.
struct QuickNumber {
  std::int64_t* setting;  // holds what it is without --quick
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

// `setting` and `arguments` live as long as the verb.
void add_quick_number(CLI::App& verb, const OptionText& option, ComparisonArguments& arguments,
                      const QuickNumber& number);

// Puts into the settings what was given, or what --quick says.
void choose_quick_numbers(const ComparisonArguments& arguments);

// What a comparison found.
struct Compared {
  std::string markdown;
  nlohmann::json json;
  std::function<Figure(Theme)> figure;
};

// Reserves --out, compares what models make of the text, prints the table or JSON, and writes the
// picture.
void run_comparison(const ComparisonArguments& arguments,
                    const std::function<Compared(std::string_view text)>& compare);

}  // namespace heed::cli
