// Tokenizers of GGUF files. Each key that begins with "tokenizer." is read, known to change
// nothing, or refused.
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heed/core/error.h"
#include "io/gguf_keys.h"
#include "text/formats.h"
#include "text/gguf_models.h"
#include "text/token_models.h"

namespace heed { inline namespace v0 { namespace text {

namespace {

// Keys that change nothing, whatever their value.
struct IdleTokenizerKey {
  const char* name;
  const char* reason;
};
constexpr const char* kOfInfilling = "a token of prompts with a gap, which heed does not write";
constexpr const char* kOtherForm = "the same tokenizer in another form";
constexpr std::array kIdleTokenizerKeys{
    IdleTokenizerKey{"ggml.fim_pre_token_id", kOfInfilling},
    IdleTokenizerKey{"ggml.fim_suf_token_id", kOfInfilling},
    IdleTokenizerKey{"ggml.fim_mid_token_id", kOfInfilling},
    IdleTokenizerKey{"ggml.prefix_token_id", kOfInfilling},
    IdleTokenizerKey{"ggml.suffix_token_id", kOfInfilling},
    IdleTokenizerKey{"ggml.middle_token_id", kOfInfilling},
    IdleTokenizerKey{"ggml.token_type_count", "of the model, which checks it"},
    IdleTokenizerKey{"huggingface.json", kOtherForm},
    IdleTokenizerKey{"rwkv.world", kOtherForm},
    IdleTokenizerKey{"chat_templates", "the names of templates beside tokenizer.chat_template"},
    IdleTokenizerKey{"chat_template.", "templates for other uses"}};

std::vector<TokenEntry> read_gguf_tokens(io::GgufKeys& keys) {
  std::vector<TokenEntry> entries;
  for (const std::string& token : keys.strings("ggml.tokens")) {
    entries.push_back({token, static_cast<std::int64_t>(entries.size())});
  }
  return entries;
}

// Reads the tokens that are searched for in texts, and those that decode to nothing.
void read_gguf_added(io::GgufKeys& keys, const std::vector<TokenEntry>& entries,
                     PipelineParts& parts) {
  const std::vector<std::int64_t> types = read_gguf_types(keys, entries.size());
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i] == kUnusedToken) parts.silent.push_back(entries[i].id);
    const bool is_special = types[i] == kControlToken || types[i] == kUnknownToken;
    if (!is_special && types[i] != kUserToken) continue;
    if (entries[i].token.size() > AddedTokenFinder::kLongest) {
      throw FormatError(keys.file().name(), 0,
                        fmt::format("the special token {} is longer than {} bytes", i,
                                    AddedTokenFinder::kLongest));
    }
    AddedToken& added = parts.added.emplace_back();
    added.content = entries[i].token;
    added.id = entries[i].id;
    added.is_special = is_special;
  }
}

std::optional<std::int64_t> read_role(io::GgufKeys& keys, const TokenTable& tokens,
                                      std::string_view role) {
  const std::string key = fmt::format("ggml.{}_token_id", role);
  if (!keys.has(key)) return std::nullopt;
  const std::int64_t id = keys.integer(key, 0);
  if (id < 0 || id >= tokens.size()) {
    keys.fail(key, fmt::format("0 <= id < {}", tokens.size()));
  }
  return id;
}

SpecialTokens read_roles(io::GgufKeys& keys, const TokenTable& tokens) {
  SpecialTokens roles;
  const auto cls = read_role(keys, tokens, "cls");
  roles.begin = read_role(keys, tokens, "bos");
  if (!roles.begin) roles.begin = cls;
  roles.end = read_role(keys, tokens, "eos");
  roles.separator = read_role(keys, tokens, "seperator");  // as the format spells it
  roles.padding = read_role(keys, tokens, "padding");
  roles.unknown = read_role(keys, tokens, "unknown");
  roles.mask = read_role(keys, tokens, "mask");
  // The model's configuration reads these, as tokens that end a text too.
  for (const char* role : {"eot", "eom", "fim_pad", "fim_rep", "fim_sep"}) {
    read_role(keys, tokens, role);
  }
  return roles;
}

// The tokens that the file puts at the beginning and end of a text.
Framing read_gguf_framing(io::GgufKeys& keys, const SpecialTokens& roles, const GgufEnds& ends) {
  Framing framing;
  const auto token = [&](const std::optional<std::int64_t>& id, const char* key,
                         const char* expected) {
    if (!id) keys.fail(key, expected);
    return FramePart{FramePart::Kind::kToken, *id, 0};
  };
  if (keys.boolean("ggml.add_bos_token", ends.adds_begin)) {
    framing.single.insert(framing.single.begin(), token(roles.begin, "ggml.bos_token_id",
                                                        "the token that texts begin with"));
  }
  if (ends.ends_with_separator) {
    keys.ignore("ggml.add_eos_token");  // what ends a text is the separator
    if (keys.boolean("ggml.add_sep_token", true)) {
      framing.single.push_back(
          token(roles.separator, "ggml.seperator_token_id", "the token that texts end with"));
    }
    return framing;
  }
  keys.ignore("ggml.add_sep_token");  // pairs of texts are refused
  if (keys.boolean("ggml.add_eos_token", ends.adds_end)) {
    framing.single.push_back(
        token(roles.end, "ggml.eos_token_id", "the token that texts end with"));
  }
  return framing;
}

const GgufModel& read_gguf_model(io::GgufKeys& keys) {
  const std::string& name = keys.string("ggml.model");
  for (const GgufModel& model : kGgufModels) {
    if (model.name == name) return model;
  }
  keys.fail("ggml.model", "gpt2, llama, t5 or bert");
}

}  // namespace

std::unique_ptr<const Tokenizer> tokenizer_from_gguf(const GgufFile& file) {
  io::GgufKeys keys(file, "tokenizer.");
  const GgufModel& model = read_gguf_model(keys);
  std::vector<TokenEntry> entries = read_gguf_tokens(keys);
  PipelineParts parts;
  read_gguf_added(keys, entries, parts);
  parts.tokens = std::make_unique<const TokenTable>(std::move(entries), std::vector<TokenEntry>{},
                                                    file.name(), 0);
  parts.special = read_roles(keys, *parts.tokens);
  const GgufEnds ends = model.add(keys, parts);
  parts.framing = read_gguf_framing(keys, parts.special, ends);
  if (keys.has("chat_template")) {
    parts.chat = read_template(keys.string("chat_template"), chat_tokens(parts));
  }
  for (const auto& [name, reason] : kIdleTokenizerKeys) keys.ignore(name);
  keys.refuse_others();
  return make_pipeline(std::move(parts));
}

}}}  // namespace heed::v0::text
