#include "usage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "core/closest_name.h"
#include "heed/viz/layout.h"

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

namespace {

constexpr int kColumn = 26;
// The largest number of excluded options to list; the description names more.
constexpr std::size_t kMostNamed = 3;

std::string wrapped(const std::string& description) {
  std::string text = wrap_text(description, 80 - kColumn);
  text.pop_back();
  return text;
}

// Returns "--a" or "--a or --b", sorted: CLI11 orders options by their address.
std::string names_of(const std::set<CLI::Option*>& options) {
  std::set<std::string> names;
  for (const CLI::Option* option : options) names.insert(option->get_name());
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " or ") + name;
  return text;
}

// Returns the excluded options to list. Where one option excludes many, neither side lists them.
std::set<CLI::Option*> excluded_by(const CLI::Option& option) {
  std::set<CLI::Option*> named;
  for (CLI::Option* other : option.get_excludes()) {
    if (other->get_excludes().size() <= kMostNamed) named.insert(other);
  }
  if (option.get_excludes().size() > kMostNamed) named.clear();
  return named;
}

}  // namespace

HelpFormatter::HelpFormatter() {
  column_width(kColumn);
  label("SUBCOMMAND", "VERB ...");
  // CLI11 labels the value of an option by its C++ type unless the option sets a label.
  for (const char* whole : {"INT", "UINT"}) label(whole, "N");
  label("FLOAT", "NUMBER");
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  if (option->get_type_size() == 0) return "";
  // A positional argument has its name as label.
  const bool is_named = option->nonpositional() && !option->get_type_name().empty();
  const std::string type = is_named ? ' ' + get_label(option->get_type_name()) : "";
  const bool is_list = option->get_expected_max() == CLI::detail::expected_max_vector_size;
  const bool says_so = type.size() > 3 && type.substr(type.size() - 3) == "...";
  return type + (is_list && !says_so ? " ..." : "");
}

std::string HelpFormatter::make_option_name(const CLI::Option* option, bool is_positional) const {
  std::string names = CLI::Formatter::make_option_name(option, is_positional);
  const std::size_t comma = names.find(',');
  return comma == names.npos ? names : names.insert(comma + 1, " ");
}

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const {
  std::string text = option->get_description();
  if (option->get_required()) text += " (required)";
  if (!option->get_default_str().empty()) {
    text += fmt::format(" (default: {})", option->get_default_str());
  }
  const auto excluded = excluded_by(*option);
  if (!option->get_needs().empty()) {
    text += fmt::format(". Only with {}", names_of(option->get_needs()));
  }
  if (!excluded.empty()) text += fmt::format(". Not with {}", names_of(excluded));
  return wrapped(text);
}

std::string HelpFormatter::make_subcommand(const CLI::App* verb) const {
  std::stringstream text;
  CLI::detail::format_help(text, verb->get_name(), wrapped(verb->get_description()), kColumn);
  return text.str();
}

}  // namespace heed::cli
