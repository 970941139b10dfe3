// Normalisers of tokenizer.json.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "io/json.h"
#include "text/character_map.h"
#include "text/formats.h"
#include "text/pattern.h"

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

Normalizer read_replace(const JsonPart& part) {
  const JsonPart pattern = part.at("pattern");
  const std::string content = part.at("content").string();
  if (const auto regex = pattern.find("Regex")) {
    return [known = read_regex(*regex), content](const AlignedText& text) {
      return replace_pattern(text, *known, content);
    };
  }
  return [literal = read_literal(pattern), content](const AlignedText& text) {
    return replace_all(text, literal, content);
  };
}

Normalizer read_map(const JsonPart& part) {
  const JsonPart text = part.at("precompiled_charsmap");
  const auto bytes = bytes_of_base64(text.string());
  if (!bytes) text.fail(" is not Base64");
  if (const std::string problem = CharacterMap::problem_of(*bytes); !problem.empty()) {
    text.fail(" " + problem);
  }
  return [map = std::make_shared<const CharacterMap>(*bytes)](const AlignedText& from) {
    return replace_clusters(from, *map);
  };
}

Normalizer unicode_form(UnicodeForm form) {
  return [form](AlignedText text) { return normalize_unicode(std::move(text), form); };
}

}  // namespace

std::shared_ptr<const Pattern> read_regex(const JsonPart& part) {
  try {
    return std::make_shared<const Pattern>(part.string());
  } catch (const PatternError& error) {
    const std::string text = io::json_string(part.string(), io::JsonCharacters::kAscii);
    part.fail(fmt::format(" is {}, which {}", text, error.what()));
  }
}

std::string read_literal(const JsonPart& pattern) {
  const auto literal = pattern.find("String");
  if (!literal) pattern.fail(" is not a string: regular expressions are not known here");
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
  if (name == "Replace") return read_replace(part);
  if (name == "Precompiled") return read_map(part);
  if (name == "Nmt") return normalize_nmt;
  if (name == "ByteLevel") return show_bytes;
  if (name == "Strip") {
    const bool at_begin = part.boolean_or("strip_left", true);
    const bool at_end = part.boolean_or("strip_right", true);
    return [=](const AlignedText& text) { return strip_space(text, at_begin, at_end); };
  }
  fail_unknown(type);
}

}}}  // namespace heed::v0::text
