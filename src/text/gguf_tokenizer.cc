// Tokenizers of GGUF files. Each key that begins with "tokenizer." is read, known to change
// nothing, or refused.
#include <fmt/format.h>

#include <array>
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
    IdleTokenizerKey{"ggml.cls_token_id", "texts of these tokenizers do not begin with it"},
    IdleTokenizerKey{"ggml.add_sep_token", "pairs of texts are refused"},
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
  roles.begin = read_role(keys, tokens, "bos");
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
Framing read_gguf_framing(io::GgufKeys& keys, const SpecialTokens& roles, bool adds_begin) {
  Framing framing;
  if (keys.boolean("ggml.add_bos_token", adds_begin)) {
    if (!roles.begin) keys.fail("ggml.bos_token_id", "the token that texts begin with");
    framing.single.insert(framing.single.begin(), {FramePart::Kind::kToken, *roles.begin, 0});
  }
  if (keys.boolean("ggml.add_eos_token", false)) {
    if (!roles.end) keys.fail("ggml.eos_token_id", "the token that texts end with");
    framing.single.push_back({FramePart::Kind::kToken, *roles.end, 0});
  }
  return framing;
}

// Refuses the keys for text normalisation by SentencePiece and BERT.
void check_no_rules(io::GgufKeys& keys) {
  constexpr std::string_view kReason = "texts are encoded as they are";
  keys.expect_flag("ggml.remove_extra_whitespaces", false, kReason);
  keys.expect_flag("ggml.normalizer.lowercase", false, kReason);
  keys.expect_flag("ggml.normalizer.strip_accents", false, kReason);
}

}  // namespace

std::unique_ptr<const Tokenizer> tokenizer_from_gguf(const GgufFile& file) {
  io::GgufKeys keys(file, "tokenizer.");
  const std::string& model = keys.string("ggml.model");
  if (model != "gpt2" && model != "llama") keys.fail("ggml.model", "gpt2 or llama");
  std::vector<TokenEntry> entries = read_gguf_tokens(keys);
  PipelineParts parts;
  read_gguf_added(keys, entries, parts);
  parts.tokens = std::make_unique<const TokenTable>(std::move(entries), std::vector<TokenEntry>{},
                                                    file.name(), 0);
  parts.special = read_roles(keys, *parts.tokens);
  check_no_rules(keys);
  const bool adds_begin =
      model == "gpt2" ? add_byte_level(keys, parts) : add_sentence_piece(keys, parts);
  parts.framing = read_gguf_framing(keys, parts.special, adds_begin);
  if (keys.has("chat_template")) {
    parts.chat = recognise_template(keys.string("chat_template"), chat_tokens(parts));
  }
  for (const auto& [name, reason] : kIdleTokenizerKeys) keys.ignore(name);
  keys.refuse_others();
  return make_pipeline(std::move(parts));
}

}}}  // namespace heed::v0::text
