#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "core/printable.h"
#include "text/formats.h"

namespace heed { inline namespace v0 { namespace text {
namespace {

using io::JsonPart;
using Kind = FramePart::Kind;

// True if `framing` is not the default: only one post-processor may change it.
bool frames(const Framing& framing) { return framing.single.size() > 1 || !framing.pair.empty(); }

// Appends the tokens of one special token in a template.
void append_special(std::vector<FramePart>& frame, const JsonPart& piece,
                    const JsonPart& special_tokens, const TokenTable& tokens) {
  const std::int64_t type = piece.at("type_id").integer();
  for (const JsonPart& id : special_tokens.at(piece.at("id").string()).at("ids").items()) {
    frame.push_back({Kind::kToken, checked_id(id, tokens, id.integer()), type});
  }
}

std::vector<FramePart> read_template(const JsonPart& part, const JsonPart& special_tokens,
                                     const TokenTable& tokens) {
  std::vector<FramePart> frame;
  for (const JsonPart& piece : part.items()) {
    if (const auto special = piece.find("SpecialToken")) {
      append_special(frame, *special, special_tokens, tokens);
      continue;
    }
    const JsonPart sequence = piece.at("Sequence");
    const JsonPart id = sequence.at("id");
    if (id.string() != "A" && id.string() != "B") fail_unknown(id);
    frame.push_back({id.string() == "A" ? Kind::kFirstText : Kind::kSecondText, 0,
                     sequence.at("type_id").integer()});
  }
  return frame;
}

void check_template(const JsonPart& part, const std::vector<FramePart>& frame, int firsts,
                    int seconds) {
  for (const FramePart& piece : frame) {
    firsts -= piece.kind == Kind::kFirstText ? 1 : 0;
    seconds -= piece.kind == Kind::kSecondText ? 1 : 0;
  }
  if (firsts != 0 || seconds != 0) part.fail(" does not have each text once");
}

Framing read_template_processing(const JsonPart& part, const TokenTable& tokens) {
  Framing framing;
  const JsonPart special_tokens = part.at("special_tokens");
  framing.single = read_template(part.at("single"), special_tokens, tokens);
  check_template(part.at("single"), framing.single, 1, 0);
  if (const auto pair = part.find("pair")) {
    framing.pair = read_template(*pair, special_tokens, tokens);
    if (!framing.pair.empty()) check_template(*pair, framing.pair, 1, 1);
  }
  return framing;
}

// Reads e.g. ["[SEP]", 102].
std::int64_t read_token_and_id(const JsonPart& part, const TokenTable& tokens) {
  const std::vector<JsonPart> items = part.items();
  if (items.size() != 2) part.fail(" is not a token and its id");
  return checked_id(part, tokens, items[1].integer());
}

Framing read_bert_processing(const JsonPart& part, const TokenTable& tokens) {
  const std::int64_t cls = read_token_and_id(part.at("cls"), tokens);
  const std::int64_t sep = read_token_and_id(part.at("sep"), tokens);
  Framing framing;
  framing.single = {{Kind::kToken, cls, 0}, {Kind::kFirstText, 0, 0}, {Kind::kToken, sep, 0}};
  framing.pair = framing.single;
  framing.pair.push_back({Kind::kSecondText, 0, 1});
  framing.pair.push_back({Kind::kToken, sep, 1});
  return framing;
}

std::optional<RangeTrimming> read_trimming(const JsonPart& part) {
  if (!part.boolean_or("trim_offsets", true)) return std::nullopt;
  return RangeTrimming{part.boolean_or("add_prefix_space", true)};
}

Framing read_roberta_processing(const JsonPart& part, const TokenTable& tokens) {
  const std::int64_t cls = read_token_and_id(part.at("cls"), tokens);
  const std::int64_t sep = read_token_and_id(part.at("sep"), tokens);
  Framing framing;
  framing.single = {{Kind::kToken, cls, 0}, {Kind::kFirstText, 0, 0}, {Kind::kToken, sep, 0}};
  framing.pair = framing.single;
  framing.pair.insert(framing.pair.end(),
                      {{Kind::kToken, sep, 0}, {Kind::kSecondText, 0, 0}, {Kind::kToken, sep, 0}});
  framing.trimming = read_trimming(part);
  return framing;
}

Framing read_sequence_of_framings(const JsonPart& part, const TokenTable& tokens) {
  Framing framing;
  for (const JsonPart& step : part.at("processors").items()) {
    const Framing next = read_framing(step, tokens);
    if (frames(next) && frames(framing)) step.fail(" is the second that adds tokens");
    if (next.trimming && framing.trimming) step.fail(" is the second that trims offsets");
    if (frames(next)) {
      framing.single = next.single;
      framing.pair = next.pair;
    }
    if (next.trimming) framing.trimming = next.trimming;
  }
  return framing;
}

}  // namespace

std::int64_t checked_id(const JsonPart& part, const TokenTable& tokens, std::int64_t id) {
  if (id < 0 || id >= tokens.size()) {
    part.fail(fmt::format(" has the id {}, expected 0 <= id < {}", id, tokens.size()));
  }
  return id;
}

void fail_unknown(const JsonPart& type) {
  type.fail(fmt::format(" is '{}', which heed does not know", io::printable(type.string())));
}

Framing read_framing(const JsonPart& part, const TokenTable& tokens) {
  const JsonPart type = part.at("type");
  const std::string& name = type.string();
  if (name == "TemplateProcessing") return read_template_processing(part, tokens);
  if (name == "BertProcessing") return read_bert_processing(part, tokens);
  if (name == "RobertaProcessing") return read_roberta_processing(part, tokens);
  if (name == "Sequence") return read_sequence_of_framings(part, tokens);
  if (name == "ByteLevel") {
    Framing framing;
    framing.trimming = read_trimming(part);
    return framing;
  }
  fail_unknown(type);
}

}}}  // namespace heed::v0::text
