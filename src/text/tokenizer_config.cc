#include <array>
#include <utility>

#include "io/json_value.h"
#include "text/formats.h"
#include "text/json_parts.h"

namespace heed { inline namespace v0 { namespace text {
namespace {

using io::JsonKind;
using io::JsonPart;

// Reads "[CLS]" or {"content": "[CLS]", …}.
std::optional<std::string> token_of(const JsonPart& config, std::string_view key) {
  const auto part = config.find(key);
  if (!part) return std::nullopt;
  return part->is(JsonKind::kObject) ? part->at("content").string() : part->string();
}

// Reads one template, or the default of several named ones.
std::optional<std::string> template_of(const JsonPart& config) {
  const auto part = config.find("chat_template");
  if (!part) return std::nullopt;
  if (!part->is(JsonKind::kArray)) return part->string();
  for (const JsonPart& item : part->items()) {
    if (item.at("name").string() == "default") return item.at("template").string();
  }
  return std::nullopt;
}

std::optional<std::string> either(std::optional<std::string> first,
                                  std::optional<std::string> second) {
  return first ? std::move(first) : std::move(second);
}

// Returns the tokens that the framing puts before and after a text, and between two.
SpecialTokens roles_of(const Framing& framing) {
  SpecialTokens roles;
  const auto& single = framing.single;
  if (single.front().kind == FramePart::Kind::kToken) roles.begin = single.front().id;
  if (single.back().kind == FramePart::Kind::kToken) roles.end = single.back().id;
  bool is_behind_first = false;
  for (const FramePart& part : framing.pair) {
    if (part.kind == FramePart::Kind::kFirstText) is_behind_first = true;
    if (part.kind != FramePart::Kind::kToken || !is_behind_first) continue;
    roles.separator = part.id;
    break;
  }
  return roles;
}

std::optional<std::int64_t> special_id(const PipelineParts& parts,
                                       const std::array<std::string_view, 2>& names) {
  for (const AddedToken& token : parts.added) {
    if (token.is_special && (token.content == names[0] || token.content == names[1])) {
      return token.id;
    }
  }
  return std::nullopt;
}

}  // namespace

TokenizerConfig parse_tokenizer_config(std::string_view text, const std::string& file) {
  const io::JsonValue root = io::parse_json(text, file);
  const JsonPart part(file, root);
  TokenizerConfig config;
  config.separator = token_of(part, "sep_token");
  config.begin = either(token_of(part, "bos_token"), token_of(part, "cls_token"));
  config.end = either(token_of(part, "eos_token"), config.separator);
  config.padding = token_of(part, "pad_token");
  config.unknown = token_of(part, "unk_token");
  config.mask = token_of(part, "mask_token");
  config.chat_template = template_of(part);
  config.tokenizer_class = part.string_or("tokenizer_class", "");
  config.bert.lowers = part.boolean_or("do_lower_case", true);
  config.bert.strips_accents = part.boolean_or("strip_accents", config.bert.lowers);
  config.bert.spaces_han = part.boolean_or("tokenize_chinese_chars", true);
  return config;
}

ChatTokens chat_tokens(const PipelineParts& parts) {
  const auto text_of = [&](const std::optional<std::int64_t>& id) {
    return id ? parts.tokens->token(*id) : std::string();
  };
  return {text_of(parts.special.begin), text_of(parts.special.end)};
}

void apply_config(PipelineParts& parts, const TokenizerConfig& config) {
  const auto choose = [&](std::optional<std::int64_t>& role, const std::optional<std::string>& said,
                          std::optional<std::int64_t> otherwise) {
    if (said) {
      if (const auto id = parts.tokens->find(*said)) otherwise = id;
    }
    if (otherwise) role = otherwise;
  };
  const SpecialTokens framed_roles = roles_of(parts.framing);
  SpecialTokens& special = parts.special;
  choose(special.begin, config.begin, framed_roles.begin);
  choose(special.end, config.end, framed_roles.end);
  choose(special.separator, config.separator, framed_roles.separator);
  choose(special.padding, config.padding, special_id(parts, {"[PAD]", "<pad>"}));
  choose(special.mask, config.mask, special_id(parts, {"[MASK]", "<mask>"}));
  choose(special.unknown, config.unknown, std::nullopt);
  if (!config.chat_template) return;
  parts.chat = recognise_template(*config.chat_template, chat_tokens(parts));
}

}}}  // namespace heed::v0::text
