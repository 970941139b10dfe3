#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "heed/error.h"
#include "io/printable.h"
#include "text/byte_pairs.h"
#include "text/code_points.h"
#include "text/formats.h"
#include "text/score_merges.h"

namespace heed::inline v0::text {
namespace {

// ggml's types of tokens.
constexpr std::int64_t kNormalToken = 1;
constexpr std::int64_t kUnknownToken = 2;
constexpr std::int64_t kControlToken = 3;
constexpr std::int64_t kUserToken = 4;

constexpr ByteLevelSplit kBytesOnly{false, false};

[[noreturn]] void fail(const GgufFile& file, const std::string& problem) {
  throw FormatError(file.name(), 0, problem);
}

// What tokenizer.ggml.pre names: how texts are normalised and split, and two settings.
struct Recipe {
  std::string_view name;
  PreTokenizer split;
  Normalizer normalizer;
  bool ignores_merges = false;
  bool adds_begin = false;  // unless the file says
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

// "default" is what converters write of models that they do not know; the pattern of GPT-2 is the
// likeliest.
Recipe recipe_of(const GgufFile& file) {
  const std::array<Recipe, 5> recipes{
      {{"default", split_gpt2, {}},
       {"gpt-2", split_gpt2, {}},
       {"smollm", split_smollm, {}},
       {"llama-bpe", split_by(SplitPattern::kLlama3), {}, true, true},
       {"qwen2", split_by(SplitPattern::kQwen2), compose_canonically}}};
  constexpr std::string_view kKey = "tokenizer.ggml.pre";
  const std::string name = file.contains(kKey) ? file.string(kKey) : "default";
  for (const Recipe& recipe : recipes) {
    if (recipe.name == name) return recipe;
  }
  fail(file, fmt::format("{} is '{}', expected default, gpt-2, smollm, llama-bpe or qwen2", kKey,
                         io::printable(name)));
}

std::vector<TokenEntry> read_gguf_tokens(const GgufFile& file) {
  std::vector<TokenEntry> entries;
  for (const std::string& token : file.strings("tokenizer.ggml.tokens")) {
    entries.push_back({token, static_cast<std::int64_t>(entries.size())});
  }
  return entries;
}

void check_gguf_count(const GgufFile& file, std::string_view key, std::size_t count,
                      std::size_t num_tokens) {
  if (count == num_tokens) return;
  fail(file, fmt::format("{} has {} values for {} tokens", key, count, num_tokens));
}

// Of each token.
std::vector<std::int64_t> read_types(const GgufFile& file, std::size_t num_tokens) {
  constexpr std::string_view kKey = "tokenizer.ggml.token_type";
  if (!file.contains(kKey)) return std::vector<std::int64_t>(num_tokens, kNormalToken);
  const auto& types = file.integers(kKey);
  check_gguf_count(file, kKey, types.size(), num_tokens);
  return types;
}

// Tokens that are looked for in texts.
std::vector<AddedToken> read_gguf_added(const GgufFile& file,
                                        const std::vector<TokenEntry>& entries) {
  std::vector<AddedToken> added;
  const std::vector<std::int64_t> types = read_types(file, entries.size());
  for (std::size_t i = 0; i < types.size(); ++i) {
    const bool is_special = types[i] == kControlToken || types[i] == kUnknownToken;
    if (!is_special && types[i] != kUserToken) continue;
    if (entries[i].token.size() > AddedTokenFinder::kLongest) {
      fail(file, fmt::format("the special token {} is longer than {} bytes", i,
                             AddedTokenFinder::kLongest));
    }
    added.emplace_back();
    added.back().content = entries[i].token;
    added.back().id = entries[i].id;
    added.back().is_special = is_special;
  }
  return added;
}

std::vector<BytePairs::Merge> read_gguf_merges(const GgufFile& file, const TokenTable& tokens) {
  std::vector<BytePairs::Merge> merges;
  for (const std::string& merge : file.strings("tokenizer.ggml.merges")) {
    const std::size_t space = merge.find(' ');
    const auto first = tokens.find(std::string_view(merge).substr(0, space));
    const auto second =
        space == merge.npos ? std::nullopt : tokens.find(std::string_view(merge).substr(space + 1));
    const auto made =
        first && second ? tokens.find(tokens.token(*first) + tokens.token(*second)) : std::nullopt;
    if (!made) {
      fail(file, fmt::format("tokenizer.ggml.merges: '{}' is not two tokens that make a third",
                             io::printable(merge)));
    }
    merges.push_back({*first, *second, *made});
  }
  return merges;
}

std::optional<std::int64_t> read_role(const GgufFile& file, const TokenTable& tokens,
                                      std::string_view role) {
  const std::string key = fmt::format("tokenizer.ggml.{}_token_id", role);
  if (!file.contains(key)) return std::nullopt;
  const std::int64_t id = file.integer(key);
  if (id < 0 || id >= tokens.size()) {
    fail(file, fmt::format("{} is {}, expected 0 <= id < {}", key, id, tokens.size()));
  }
  return id;
}

SpecialTokens read_roles(const GgufFile& file, const TokenTable& tokens) {
  SpecialTokens roles;
  roles.begin = read_role(file, tokens, "bos");
  roles.end = read_role(file, tokens, "eos");
  roles.separator = read_role(file, tokens, "seperator");  // as the format spells it
  roles.padding = read_role(file, tokens, "padding");
  roles.unknown = read_role(file, tokens, "unknown");
  roles.mask = read_role(file, tokens, "mask");
  return roles;
}

// The tokens that the file wants at the ends of a text.
Framing read_gguf_framing(const GgufFile& file, const SpecialTokens& roles, bool adds_begin) {
  const auto is_set = [&](std::string_view key, bool otherwise) {
    return file.contains(key) ? file.boolean(key) : otherwise;
  };
  Framing framing;
  if (is_set("tokenizer.ggml.add_bos_token", adds_begin)) {
    if (!roles.begin) fail(file, "tokenizer.ggml.bos_token_id is missing");
    framing.single.insert(framing.single.begin(), {FramePart::Kind::kToken, *roles.begin, 0});
  }
  if (is_set("tokenizer.ggml.add_eos_token", false)) {
    if (!roles.end) fail(file, "tokenizer.ggml.eos_token_id is missing");
    framing.single.push_back({FramePart::Kind::kToken, *roles.end, 0});
  }
  return framing;
}

// "gpt2": BPE over bytes. Says whether a text begins with a token unless the file says.
bool add_byte_level(const GgufFile& file, PipelineParts& parts) {
  Recipe recipe = recipe_of(file);
  BytePairOptions options;
  options.ignores_merges = recipe.ignores_merges;
  parts.model = std::make_unique<const BytePairs>(*parts.tokens,
                                                  read_gguf_merges(file, *parts.tokens), options);
  parts.normalizer = std::move(recipe.normalizer);
  parts.pre_tokenizer = std::move(recipe.split);
  parts.decoder = byte_level_decoder();
  return recipe.adds_begin;
}

constexpr const char* kSpaceMark = "▁";

// A space before the text, if it wants one, and all spaces as marks.
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

// What SentencePiece does with a text before it is split.
void check_no_rules(const GgufFile& file) {
  constexpr std::string_view kExtra = "tokenizer.ggml.remove_extra_whitespaces";
  if (file.contains(kExtra) && file.boolean(kExtra)) {
    fail(file, fmt::format("{} is true, which heed lacks", kExtra));
  }
  constexpr std::string_view kRules = "tokenizer.ggml.precompiled_charsmap";
  if (file.contains(kRules)) fail(file, fmt::format("it has {}, which heed lacks", kRules));
}

std::vector<BytePairs::Merge> read_scores(const GgufFile& file, const TokenTable& tokens) {
  constexpr std::string_view kKey = "tokenizer.ggml.scores";
  const std::vector<double>& scores = file.numbers(kKey);
  const auto num_tokens = static_cast<std::size_t>(tokens.size());
  check_gguf_count(file, kKey, scores.size(), num_tokens);
  const std::vector<std::int64_t> types = read_types(file, num_tokens);
  std::vector<bool> is_made(num_tokens);
  for (std::size_t i = 0; i < num_tokens; ++i) {
    if (std::isnan(scores[i])) fail(file, fmt::format("{}[{}] is nan", kKey, i));
    is_made[i] = types[i] == kNormalToken;
    const std::size_t size = tokens.token(static_cast<std::int64_t>(i)).size();
    // Finding its parts takes time quadratic in its length.
    if (is_made[i] && size > AddedTokenFinder::kLongest) {
      fail(file, fmt::format("token {} has {} bytes, expected at most {}", i, size,
                             AddedTokenFinder::kLongest));
    }
  }
  return merges_of_scores(tokens, scores, is_made);
}

// "llama": SentencePiece's BPE over characters, with a token for each byte of those that it lacks.
bool add_sentence_piece(const GgufFile& file, PipelineParts& parts) {
  check_no_rules(file);
  BytePairOptions options;
  options.unknown = parts.special.unknown;
  options.fuses_unknown = true;
  options.falls_back = true;
  parts.model =
      std::make_unique<const BytePairs>(*parts.tokens, read_scores(file, *parts.tokens), options);
  constexpr std::string_view kFirst = "tokenizer.ggml.add_space_prefix";
  const bool has_first = !file.contains(kFirst) || file.boolean(kFirst);
  parts.normalizer = marking_spaces(has_first);
  parts.decoder = spaces_from_marks(has_first);
  return true;
}

}  // namespace

std::unique_ptr<const Tokenizer> tokenizer_from_gguf(const GgufFile& file) {
  const std::string& model = file.string("tokenizer.ggml.model");
  if (model != "gpt2" && model != "llama") {
    fail(file,
         fmt::format("tokenizer.ggml.model is '{}', expected gpt2 or llama", io::printable(model)));
  }
  std::vector<TokenEntry> entries = read_gguf_tokens(file);
  PipelineParts parts;
  parts.added = read_gguf_added(file, entries);
  parts.tokens = std::make_unique<const TokenTable>(std::move(entries), std::vector<TokenEntry>{},
                                                    file.name(), 0);
  parts.special = read_roles(file, *parts.tokens);
  const bool adds_begin =
      model == "gpt2" ? add_byte_level(file, parts) : add_sentence_piece(file, parts);
  parts.framing = read_gguf_framing(file, parts.special, adds_begin);
  if (file.contains("tokenizer.chat_template")) {
    parts.chat =
        recognise_template(file.string("tokenizer.chat_template"), chat_tokens(parts));
  }
  return make_pipeline(std::move(parts));
}

}  // namespace heed::inline v0::text
