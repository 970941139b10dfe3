// Every option of every verb, as its help names it, refuses values that are not of its kind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>

#include "support/command.h"

namespace heed { namespace {

using testing::HasSubstr;
using testing::Not;
using testing_support::CommandResult;
using testing_support::run_command;
using testing_support::TemporaryFolder;
using Arguments = std::vector<std::string>;

struct Option {
  std::string name;
  std::string type;  // empty for a flag
  bool is_required = false;
};

Arguments joined(Arguments first, const Arguments& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// Returns the verbs that the error about an unknown verb lists.
std::vector<std::string> verbs_of(const Arguments& verb) {
  const std::string err = run_command(joined(verb, {"no-such-verb"})).err;
  const std::regex known("the verbs (?:of '[a-z]+' )?are ([a-z0-9, -]+)");
  std::smatch found;
  EXPECT_TRUE(std::regex_search(err, found, known)) << err;
  std::vector<std::string> verbs;
  std::istringstream list(found[1]);
  for (std::string name; list >> name;) verbs.push_back(name.substr(0, name.find(',')));
  return verbs;
}

std::vector<Arguments> all_verbs() {
  std::vector<Arguments> verbs;
  for (const std::string& verb : verbs_of({})) {
    // compare also works without the name of a comparison.
    const bool has_verbs = verb == "train" || verb == "bench" || verb == "compare";
    if (verb == "compare" || !has_verbs) verbs.push_back({verb});
    if (!has_verbs) continue;
    for (const std::string& task : verbs_of({verb})) verbs.push_back({verb, task});
  }
  return verbs;
}

// Returns the help of each option and argument, with its description on one line.
std::vector<std::string> entries_of(const Arguments& verb) {
  std::vector<std::string> entries;
  std::istringstream help(run_command(joined(verb, {"--help"})).out);
  for (std::string line; std::getline(help, line);) {
    const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
    if (indent > 2 && !entries.empty()) {
      entries.back() += ' ' + line.substr(indent);
    } else {
      entries.push_back(line);
    }
  }
  return entries;
}

bool is_required(const std::string& entry) { return entry.find("(required)") != std::string::npos; }

// Parses entries like "  --query FILE        [batch, … (required)", "  -h, --help     Print …".
std::vector<Option> options_of(const std::vector<std::string>& entries) {
  const std::regex entry_of_option("^  (?:-[a-z], )?(--[a-z0-9-]+)(?: ([^ ]+))?(?: .*)?");
  std::vector<Option> options;
  for (const std::string& entry : entries) {
    std::smatch found;
    if (!std::regex_match(entry, found, entry_of_option) || found[1] == "--help") continue;
    options.push_back({found[1], found[2], is_required(entry)});
  }
  return options;
}

// Returns a word for each required argument without a name.
Arguments positionals_of(const std::vector<std::string>& entries) {
  const std::regex entry_of_positional("^  [A-Z]+ .*");
  Arguments words;
  for (const std::string& entry : entries) {
    if (std::regex_match(entry, entry_of_positional) && is_required(entry)) words.push_back("word");
  }
  return words;
}

enum class Kind { kFlag, kWhole, kNumber, kText };

// Throws for an unknown type: each type needs a kind, which determines the tested values.
Kind kind_of(const std::string& type) {
  static const std::set<std::string> whole{"N", "N,..."};
  static const std::set<std::string> numbers{"NUMBER", "P", "T", "C", "R"};
  static const std::set<std::string> texts{"FILE",     "DIR",  "PATH",  "TYPE",    "HEADS",
                                           "DIR|FILE", "TEXT", "NAMES", "MASK",    "NAME",
                                           "SOURCE",   "LOG",  "SEAL",  "ID=VALUE"};
  if (type.empty()) return Kind::kFlag;
  if (whole.count(type) > 0) return Kind::kWhole;
  if (numbers.count(type) > 0) return Kind::kNumber;
  const bool is_choice = type.find('|') != type.npos;
  EXPECT_TRUE(is_choice || texts.count(type) > 0) << "the type '" << type << "' is new";
  return Kind::kText;
}

// Returns values that are never valid. The same code refuses them everywhere, so options test them
// in turn.
std::vector<std::string> wrong_values(Kind kind, std::size_t option) {
  const auto in_turn = [&](const std::vector<std::string>& values) {
    return values[option % values.size()];
  };
  switch (kind) {
    case Kind::kWhole:
      return {in_turn({"", "0x10", "1.5", "99999999999999999999"}), "-1"};
    case Kind::kNumber:
      return {in_turn({"", "0x10", "1e999"}), "nan"};
    case Kind::kFlag:
      return {in_turn({"false", ""})};
    case Kind::kText:
      break;
  }
  return {""};
}

// True for options for which a negative number is meaningful.
bool takes_negative(const std::string& option) { return option == "--query-offset"; }

Arguments with_value(const Option& option, Kind kind, const std::string& value) {
  if (kind == Kind::kFlag) return {option.name + "=" + value};
  if (option.type == "SOURCE") return {option.name, value, value};
  return {option.name, value};
}

// Gives each option of a verb what is none of its values. Returns the number of options.
std::size_t check_options(const Arguments& verb) {
  const TemporaryFolder folder;
  const auto entries = entries_of(verb);
  const auto options = options_of(entries);
  for (std::size_t i = 0; i < options.size(); ++i) {
    const Option& option = options[i];
    Arguments others = positionals_of(entries);
    for (const Option& other : options) {
      if (!other.is_required || other.name == option.name) continue;
      others.insert(others.end(), {other.name, folder / "missing/x"});
    }
    const Kind kind = kind_of(option.type);
    for (const std::string& value : wrong_values(kind, i)) {
      if (value == "-1" && takes_negative(option.name)) continue;
      const Arguments given = joined(joined(verb, others), with_value(option, kind, value));
      const CommandResult result = run_command(given);
      EXPECT_EQ(result.exit_code, 2) << testing::PrintToString(given) << result.err;
      EXPECT_EQ(result.out, "") << testing::PrintToString(given);
      const std::string name = kind == Kind::kFlag ? option.name.substr(2) : option.name;
      EXPECT_THAT(result.err, HasSubstr(name)) << testing::PrintToString(given);
    }
  }
  EXPECT_EQ(folder.num_files(), 0U);
  return options.size();
}

TEST(Arguments, EachOptionOfEachVerbRefusesWhatIsNoneOfItsValues) {
  std::size_t num_options = 0;
  for (const Arguments& verb : all_verbs()) num_options += check_options(verb);
  EXPECT_GT(num_options, 100U) << "the help was not understood";
}

// One that computes, one that trains, and one that measures.
TEST(Arguments, EachOptionOfSomeVerbsRefusesWhatIsNoneOfItsValues) {
  for (const Arguments& verb : {Arguments{"run"}, {"train", "copy"}, {"bench", "decode"}}) {
    EXPECT_GT(check_options(verb), 8U) << testing::PrintToString(verb);
  }
}

TEST(Arguments, SayWhatWasFoundAndExpected) {
  const auto error = [](const Arguments& arguments) { return run_command(arguments).err; };
  EXPECT_THAT(error({"train", "copy", "--seed", "-1"}),
              HasSubstr("--seed: '-1' is not a whole number from 0 to 18446744073709551615"));
  EXPECT_THAT(error({"train", "copy", "--save", ""}), HasSubstr("--save: the text is empty"));
  EXPECT_THAT(error({"run", "--scale", ""}), HasSubstr("--scale: '' is not a finite number"));
  EXPECT_THAT(error({"bench", "forward", "--seq", "8,,9"}),
              HasSubstr("--seq: '' is not a whole number"));
  EXPECT_THAT(error({"bench", "forward", "--seq", "8,0"}), HasSubstr("--seq: "));
  EXPECT_THAT(error({"info", "--json="}), HasSubstr("--json takes no value, found '--json='"));
  EXPECT_THAT(error({"--version="}), HasSubstr("--version takes no value"));
}

TEST(Arguments, WhatLooksLikeAFlagMayBeAValue) {
  const auto run = [](const Arguments& arguments) { return run_command(arguments); };
  EXPECT_THAT(run({"lesson", "--out", "--list="}).err, Not(HasSubstr("takes no value")));
  EXPECT_EQ(run({"explain", "--", "--json="}).exit_code, 0);
}

}  // namespace
}  // namespace heed
