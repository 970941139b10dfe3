// Describes errors in a command line.
#pragma once

#include <CLI/App.hpp>
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

}  // namespace heed::cli
