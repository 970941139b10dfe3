// Tokenizers of GGUF files. Each key that begins with "tokenizer." is read, known to change
// nothing, or refused.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/printable.h"
#include "heed/core/error.h"
#include "io/gguf_keys.h"
#include "text/code_points.h"
#include "text/decoders.h"
#include "text/formats.h"
#include "text/token_models.h"

namespace heed { inline namespace v0 { namespace text {

namespace {

// ggml's token types.
enum GgufTokenType : std::int64_t {
  kUndefinedToken,
  kNormalToken,
  kUnknownToken,
  kControlToken,
  kUserToken,
  kUnusedToken,  // converters add these when a model has more ids than tokens
  kByteToken,
};

constexpr ByteLevelSplit kBytesOnly{false, false};

[[noreturn]] void fail_in(io::GgufKeys& keys, const std::string& problem) {
  throw FormatError(keys.file().name(), 0, problem);
}

// One choice of tokenizer.ggml.pre: the normalisation and splitting of texts, and two settings.
struct Recipe {
  std::string_view name;
  PreTokenizer split;
  Normalizer normalizer;
  bool ignores_merges = false;
  bool adds_begin = false;  // default if the file has no such key
};

void split_gpt2(PreTokenized& text) { split_byte_level(text, {false, true}); }

void split_smollm(PreTokenized& text) {
  split_characters(text, is_number, SplitBehavior::kIsolated);
  split_byte_level(text, {false, true});
}

PreTokenizer split_by(SplitPattern pattern) {
  return [pattern](PreTokenized& text) {
    split_pattern(text, pattern);
    split_byte_level(text, kBytesOnly);
  };
}

AlignedText compose_canonically(AlignedText text) {
  return normalize_unicode(std::move(text), {true, false});
}

// Converters write "default" for models that they do not know; GPT-2's pattern is the likeliest.
Recipe recipe_of(io::GgufKeys& keys) {
  const std::array<Recipe, 5> recipes{
      {{"default", split_gpt2, {}},
       {"gpt-2", split_gpt2, {}},
       {"smollm", split_smollm, {}},
       {"llama-bpe", split_by(SplitPattern::kLlama3), {}, true, true},
       {"qwen2", split_by(SplitPattern::kQwen2), compose_canonically}}};
  const std::string name = keys.string("ggml.pre", "default");
  for (const Recipe& recipe : recipes) {
    if (recipe.name == name) return recipe;
  }
  keys.fail("ggml.pre", "default, gpt-2, smollm, llama-bpe or qwen2");
}

void check_gguf_count(io::GgufKeys& keys, std::string_view key, std::size_t count,
                      std::size_t num_tokens) {
  if (count == num_tokens) return;
  fail_in(keys,
          fmt::format("{} has {} values for {} tokens", keys.name_of(key), count, num_tokens));
}

std::vector<BytePairs::Merge> read_gguf_merges(io::GgufKeys& keys, const TokenTable& tokens) {
  std::vector<BytePairs::Merge> merges;
  for (const std::string& merge : keys.strings("ggml.merges")) {
    const std::size_t space = merge.find(' ');
    const auto first = tokens.find(std::string_view(merge).substr(0, space));
    const auto second =
        space == merge.npos ? std::nullopt : tokens.find(std::string_view(merge).substr(space + 1));
    const auto made =
        first && second ? tokens.find(tokens.token(*first) + tokens.token(*second)) : std::nullopt;
    if (!made) {
      fail_in(keys, fmt::format("tokenizer.ggml.merges: '{}' is not two tokens that make a third",
                                io::printable(merge)));
    }
    merges.push_back({*first, *second, *made});
  }
  return merges;
}

constexpr const char* kSpaceMark = "▁";

// Replaces all spaces by marks, and puts a mark before the text if `has_first`.
Normalizer marking_spaces(bool has_first) {
  return [has_first](AlignedText text) {
    if (has_first) text = prepend(std::move(text), kSpaceMark);
    return replace_all(text, " ", kSpaceMark);
  };
}

Decoder spaces_from_marks(bool has_first) {
  std::vector<Decoder> steps{replacing_decoder(kSpaceMark, " "), byte_fallback_decoder(),
                             fusing_decoder()};
  if (has_first) steps.push_back(stripping_decoder({" ", 1, 0}));
  return decoders_of(steps);
}

// The type of each token. The keys below begin with "tokenizer."; errors are FormatError.
std::vector<std::int64_t> read_gguf_types(io::GgufKeys& keys, std::size_t num_tokens) {
  constexpr std::string_view kKey = "ggml.token_type";
  if (!keys.has(kKey)) return std::vector<std::int64_t>(num_tokens, kNormalToken);
  const auto& types = keys.integers(kKey);
  check_gguf_count(keys, kKey, types.size(), num_tokens);
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i] >= kUndefinedToken && types[i] <= kByteToken) continue;
    fail_in(keys, fmt::format("{}[{}] is {}, expected 0 to {}", keys.name_of(kKey), i, types[i],
                              static_cast<std::int64_t>(kByteToken)));
  }
  return types;
}

std::vector<BytePairs::Merge> read_scores(io::GgufKeys& keys, const TokenTable& tokens) {
  constexpr std::string_view kKey = "ggml.scores";
  const std::vector<double>& scores = keys.numbers(kKey);
  const auto num_tokens = static_cast<std::size_t>(tokens.size());
  check_gguf_count(keys, kKey, scores.size(), num_tokens);
  const std::vector<std::int64_t> types = read_gguf_types(keys, num_tokens);
  std::vector<bool> is_made(num_tokens);
  for (std::size_t i = 0; i < num_tokens; ++i) {
    if (std::isnan(scores[i])) fail_in(keys, fmt::format("{}[{}] is nan", keys.name_of(kKey), i));
    is_made[i] = types[i] == kNormalToken;
    const std::size_t size = tokens.token(static_cast<std::int64_t>(i)).size();
    // The time to find its parts is quadratic in its length.
    if (is_made[i] && size > AddedTokenFinder::kLongest) {
      fail_in(keys, fmt::format("token {} has {} bytes, expected at most {}", i, size,
                                AddedTokenFinder::kLongest));
    }
  }
  return merges_of_scores(tokens, scores, is_made);
}

// "gpt2": BPE over bytes. Returns whether a text begins with a token by default, i.e. unless the
// file sets it.
bool add_byte_level(io::GgufKeys& keys, PipelineParts& parts) {
  Recipe recipe = recipe_of(keys);
  keys.expect_flag("ggml.add_space_prefix", false, "texts over bytes begin as they are");
  keys.ignore("ggml.scores");  // merges are ranked by their order
  BytePairOptions options;
  options.ignores_merges = recipe.ignores_merges;
  parts.model = std::make_unique<const BytePairs>(*parts.tokens,
                                                  read_gguf_merges(keys, *parts.tokens), options);
  parts.normalizer = std::move(recipe.normalizer);
  parts.pre_tokenizer = std::move(recipe.split);
  parts.decoder = byte_level_decoder();
  return recipe.adds_begin;
}

// "llama": SentencePiece's BPE over characters, with a token for each byte of the missing
// characters. Returns the same.
bool add_sentence_piece(io::GgufKeys& keys, PipelineParts& parts) {
  keys.ignore("ggml.pre");     // texts are not split
  keys.ignore("ggml.merges");  // merges follow from scores
  BytePairOptions options;
  options.unknown = parts.special.unknown;
  options.fuses_unknown = true;
  options.falls_back = true;
  parts.model =
      std::make_unique<const BytePairs>(*parts.tokens, read_scores(keys, *parts.tokens), options);
  const bool has_first = keys.boolean("ggml.add_space_prefix", true);
  parts.normalizer = marking_spaces(has_first);
  parts.decoder = spaces_from_marks(has_first);
  return true;
}

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
    parts.chat = read_template(keys.string("chat_template"), chat_tokens(parts));
  }
  for (const auto& [name, reason] : kIdleTokenizerKeys) keys.ignore(name);
  keys.refuse_others();
  return make_pipeline(std::move(parts));
}

}}}  // namespace heed::v0::text
