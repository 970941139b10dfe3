// Describes the command line: the help of every verb, and errors.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace heed::cli {

// Returns "there is no verb 'explian'; did you mean 'explain'? The verbs are demo, …". `parent` is
// the verb to which the missing verb would belong; null for the command itself.
std::string unknown_verb(std::string_view name, const CLI::App* parent,
                         const std::vector<std::string>& known);

// Returns the message of an error that parsing `command` threw: names all missing required options,
// and for an unknown option the nearest one.
std::string describe_usage(const CLI::App& command, const CLI::ParseError& error);

// CLI11's help in 80 columns. It says in words whether an option is required, its default, and
// which options it needs or excludes.
class HelpFormatter final : public CLI::Formatter {
 public:
  HelpFormatter();

  std::string make_option_name(const CLI::Option* option, bool is_positional) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
  std::string make_subcommand(const CLI::App* verb) const override;
};

}  // namespace heed::cli
