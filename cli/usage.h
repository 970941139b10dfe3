// What is wrong with a command line, in heed's words.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace heed::cli {

// "there is no verb 'explian'; did you mean 'explain'? The verbs are demo, …". `parent` is the verb
// of which it would be one; null for the command's own.
std::string unknown_verb(std::string_view name, const CLI::App* parent,
                         const std::vector<std::string>& known);

// The message of an error that parsing `command` threw: all options that are missing at once, and
// for an option that does not exist the one that was meant.
std::string describe_usage(const CLI::App& command, const CLI::ParseError& error);

}  // namespace heed::cli
