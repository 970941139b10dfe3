#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "io/json.h"
#include "text/code_points.h"
#include "text/json_parts.h"

namespace heed { inline namespace v0 { namespace text {
namespace {

using io::JsonPart;

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
  const SplitPattern* known = find_pattern(regex->string());
  if (known == nullptr) {
    regex->fail(fmt::format(" is {}: heed knows those of GPT-2, Llama 3 and Qwen2",
                            io::json_string(regex->string(), io::JsonCharacters::kAscii)));
  }
  // Every byte is part of a match.
  const bool keeps_matches =
      behavior == SplitBehavior::kIsolated || (behavior == SplitBehavior::kRemoved && inverts);
  if (!keeps_matches) {
    part.at("behavior").fail(" is not Isolated, nor Removed with 'invert', beside a Regex");
  }
  return [pattern = *known](PreTokenized& text) { split_pattern(text, pattern); };
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
  if (name == "ByteLevel") {
    const ByteLevelSplit options{part.boolean_or("add_prefix_space", true),
                                 part.boolean_or("use_regex", true)};
    return [options](PreTokenized& text) { split_byte_level(text, options); };
  }
  fail_unknown(type);
}

}}}  // namespace heed::v0::text
