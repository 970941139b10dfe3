#include "usage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/closest_name.h"

namespace heed::cli {

namespace {

// Names that options have in heed's Python functions or in other programs, and heed's options for
// them.
struct OtherName {
  std::string_view name;
  std::string_view option;  // the verb must have it
  std::string_view remedy;
};
constexpr OtherName kOtherNames[] = {
    {"--causal", "--mask", "--mask causal, or --mask \"causal(bottom_right)\""},
    {"--window", "--mask", "--mask \"sliding_window(LEFT, RIGHT)\""},
    {"--scale", "--color-scale", "--color-scale for the colours of a picture"}};

// Returns the verb whose options are parsed: for `heed train lm` the verb lm.
const CLI::App& parsed_verb(const CLI::App& command) {
  const auto verbs = command.get_subcommands();
  return verbs.empty() ? command : parsed_verb(*verbs.front());
}

std::vector<std::string_view> views_of(const std::vector<std::string>& names) {
  return {names.begin(), names.end()};
}

std::vector<std::string> missing_options(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options()) {
    if (option->get_required() && option->count() == 0) names.push_back(option->get_name());
  }
  return names;
}

// Returns the names of a verb's options, "--json".
std::vector<std::string> options_of(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options()) {
    if (option->nonpositional()) names.push_back(option->get_name());
  }
  return names;
}

std::string unknown_option(const CLI::App& verb, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  const std::vector<std::string> known = options_of(verb);
  for (const OtherName& other : kOtherNames) {
    const bool has_remedy = std::ranges::find(known, other.option) != known.end();
    if (has_remedy && name == other.name) {
      return fmt::format("there is no option '{}': say {}", name, other.remedy);
    }
  }
  return fmt::format("there is no option '{}'{}", name,
                     heed::detail::did_you_mean(name, views_of(known)));
}

}  // namespace

std::string unknown_verb(std::string_view name, const CLI::App* parent,
                         const std::vector<std::string>& known) {
  const std::string meant = heed::detail::did_you_mean(name, views_of(known));
  return fmt::format(
      "there is no verb '{}'{} verbs {}are {}", name, meant.empty() ? "; the" : meant + " The",
      parent == nullptr ? "" : fmt::format("of '{}' ", parent->get_name()), fmt::join(known, ", "));
}

std::string describe_usage(const CLI::App& command, const CLI::ParseError& error) {
  const CLI::App& verb = parsed_verb(command);
  // An unknown option is reported first, because other errors may follow from it.
  for (const std::string& word : command.remaining(true)) {
    if (word.size() > 2 && word.starts_with("--")) return unknown_option(verb, word);
  }
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError)) {
    const std::vector<std::string> missing = missing_options(verb);
    if (missing.size() == 1) return missing.front() + " is required";
    if (!missing.empty()) return fmt::format("{} are required", fmt::join(missing, ", "));
  }
  return error.what();
}

}  // namespace heed::cli
