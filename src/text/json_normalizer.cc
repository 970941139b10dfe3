#include <string>
#include <utility>
#include <vector>

#include "text/json_parts.h"

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

}}}  // namespace heed::v0::text
