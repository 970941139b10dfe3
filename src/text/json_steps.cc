// Normalisers, pre-tokenizers and decoders of tokenizer.json.
#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "io/json.h"
#include "text/code_points.h"
#include "text/formats.h"

namespace heed { inline namespace v0 { namespace text {

namespace {

using io::JsonPart;

Normalizer read_bert_normalizer(const JsonPart& part) {
  BertNormalization options;
  options.cleans = part.boolean_or("clean_text", true);
  options.spaces_han = part.boolean_or("handle_chinese_chars", true);
  options.lowers = part.boolean_or("lowercase", true);
  options.strips_accents = part.boolean_or("strip_accents", options.lowers);
  return [options](AlignedText text) { return normalize_bert(std::move(text), options); };
}

Normalizer read_sequence(const JsonPart& part) {
  std::vector<Normalizer> steps;
  for (const JsonPart& step : part.at("normalizers").items()) {
    steps.push_back(read_normalizer(step));
  }
  return [steps = std::move(steps)](AlignedText text) {
    for (const Normalizer& step : steps) text = step(std::move(text));
    return text;
  };
}

Normalizer unicode_form(UnicodeForm form) {
  return [form](AlignedText text) { return normalize_unicode(std::move(text), form); };
}

}  // namespace

std::string read_literal(const JsonPart& pattern) {
  const auto literal = pattern.find("String");
  if (!literal) pattern.fail(" is not a string: heed knows no regular expressions here");
  if (literal->string().empty()) literal->fail(" is empty");
  return literal->string();
}

Normalizer read_normalizer(const JsonPart& part) {
  const JsonPart type = part.at("type");
  const std::string& name = type.string();
  if (name == "BertNormalizer") return read_bert_normalizer(part);
  if (name == "Sequence") return read_sequence(part);
  if (name == "NFD") return unicode_form({false, false});
  if (name == "NFC") return unicode_form({true, false});
  if (name == "NFKD") return unicode_form({false, true});
  if (name == "NFKC") return unicode_form({true, true});
  if (name == "Lowercase") return lower_case;
  if (name == "StripAccents") return strip_marks;
  if (name == "Prepend") {
    return [prefix = part.at("prepend").string()](AlignedText text) {
      return prepend(std::move(text), prefix);
    };
  }
  if (name == "Replace") {
    return [pattern = read_literal(part.at("pattern")), content = part.at("content").string()](
               const AlignedText& text) { return replace_all(text, pattern, content); };
  }
  fail_unknown(type);
}

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

namespace {

Decoder read_sequence_of_decoders(const JsonPart& part) {
  std::vector<Decoder> steps;
  for (const JsonPart& step : part.at("decoders").items()) steps.push_back(read_decoder(step));
  return decoders_of(steps);
}

std::int64_t read_count(const JsonPart& part) {
  if (part.integer() < 0) part.fail(" is negative");
  return part.integer();
}

Decoder read_strip(const JsonPart& part) {
  const JsonPart content = part.at("content");
  if (count_characters(content.string()) != 1) content.fail(" is not one character");
  return stripping_decoder(
      {content.string(), read_count(part.at("start")), read_count(part.at("stop"))});
}

}  // namespace

Decoder read_decoder(const JsonPart& part) {
  const JsonPart type = part.at("type");
  const std::string& name = type.string();
  if (name == "ByteLevel") return byte_level_decoder();
  if (name == "ByteFallback") return byte_fallback_decoder();
  if (name == "Fuse") return fusing_decoder();
  if (name == "Strip") return read_strip(part);
  if (name == "Sequence") return read_sequence_of_decoders(part);
  if (name == "WordPiece") {
    return word_piece_decoder(part.string_or("prefix", "##"), part.boolean_or("cleanup", true));
  }
  if (name == "Replace") {
    return replacing_decoder(read_literal(part.at("pattern")), part.at("content").string());
  }
  fail_unknown(type);
}

}}}  // namespace heed::v0::text
