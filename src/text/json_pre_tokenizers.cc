// Pre-tokenizers of tokenizer.json.
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "text/code_points.h"
#include "text/formats.h"

namespace heed { inline namespace v0 { namespace text {

using io::JsonPart;

namespace {

SplitBehavior read_behavior(const JsonPart& part) {
  constexpr std::array<std::pair<std::string_view, SplitBehavior>, 5> kBehaviors{
      {{"Removed", SplitBehavior::kRemoved},
       {"Isolated", SplitBehavior::kIsolated},
       {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
       {"MergedWithNext", SplitBehavior::kMergedWithNext},
       {"Contiguous", SplitBehavior::kContiguous}}};
  for (const auto& [name, behavior] : kBehaviors) {
    if (part.string() == name) return behavior;
  }
  fail_unknown(part);
}

PreTokenizer read_split(const JsonPart& part) {
  const SplitBehavior behavior = read_behavior(part.at("behavior"));
  const bool inverts = part.boolean_or("invert", false);
  const JsonPart pattern = part.at("pattern");
  const auto regex = pattern.find("Regex");
  if (!regex) {
    return [split = LiteralSplit{read_literal(pattern), behavior, inverts}](PreTokenized& text) {
      split_literal(text, split);
    };
  }
  return [split = PatternSplit{read_regex(*regex), behavior, inverts}](PreTokenized& text) {
    split_pattern(text, split);
  };
}

SpaceMarking::Prefix read_prefix(const JsonPart& part) {
  using Prefix = SpaceMarking::Prefix;
  // Files of early versions have a flag instead of the scheme.
  if (!part.boolean_or("add_prefix_space", true)) return Prefix::kNever;
  const auto scheme = part.find("prepend_scheme");
  if (!scheme || scheme->string() == "always") return Prefix::kAlways;
  if (scheme->string() == "first") return Prefix::kFirst;
  if (scheme->string() == "never") return Prefix::kNever;
  fail_unknown(*scheme);
}

PreTokenizer read_character(const JsonPart& part) {
  const JsonPart character = part.at("delimiter");
  check_character(character);
  return [split = LiteralSplit{character.string(), SplitBehavior::kRemoved, false}](
             PreTokenized& text) { split_literal(text, split); };
}

PreTokenizer read_characters(bool (*is_match)(char32_t) noexcept, SplitBehavior behavior) {
  return [=](PreTokenized& text) { split_characters(text, is_match, behavior); };
}

PreTokenizer read_sequence_of_splits(const JsonPart& part) {
  std::vector<PreTokenizer> steps;
  for (const JsonPart& step : part.at("pretokenizers").items()) {
    steps.push_back(read_pre_tokenizer(step));
  }
  return [steps = std::move(steps)](PreTokenized& text) {
    for (const PreTokenizer& step : steps) step(text);
  };
}

}  // namespace

void check_character(const JsonPart& part) {
  if (count_characters(part.string()) != 1) part.fail(" is not one character");
}

SpaceMarking read_space_marking(const JsonPart& part) {
  SpaceMarking marking;
  marking.prefix = read_prefix(part);
  const JsonPart mark = part.at("replacement");
  check_character(mark);
  marking.mark = mark.string();
  marking.splits = part.boolean_or("split", true);
  return marking;
}

PreTokenizer read_pre_tokenizer(const JsonPart& part) {
  const JsonPart type = part.at("type");
  const std::string& name = type.string();
  if (name == "BertPreTokenizer") return split_bert;
  if (name == "Sequence") return read_sequence_of_splits(part);
  if (name == "Split") return read_split(part);
  if (name == "Whitespace") return split_words;
  if (name == "WhitespaceSplit") return read_characters(is_space, SplitBehavior::kRemoved);
  if (name == "Punctuation") {
    const auto behavior = part.find("behavior");
    return read_characters(is_punctuation,
                           behavior ? read_behavior(*behavior) : SplitBehavior::kIsolated);
  }
  if (name == "Digits") {
    const bool is_each = part.boolean_or("individual_digits", false);
    return read_characters(is_number,
                           is_each ? SplitBehavior::kIsolated : SplitBehavior::kContiguous);
  }
  if (name == "CharDelimiterSplit") return read_character(part);
  if (name == "Metaspace") {
    return [options = read_space_marking(part)](PreTokenized& text) { mark_spaces(text, options); };
  }
  if (name == "ByteLevel") {
    const ByteLevelSplit options{part.boolean_or("add_prefix_space", true),
                                 part.boolean_or("use_regex", true)};
    return [options](PreTokenized& text) { split_byte_level(text, options); };
  }
  fail_unknown(type);
}

}}}  // namespace heed::v0::text
