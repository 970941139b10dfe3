// Formats the help of every verb.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <string>

namespace heed::cli {

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
