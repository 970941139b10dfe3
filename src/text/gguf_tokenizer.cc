#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "heed/error.h"
#include "io/printable.h"
#include "text/byte_pairs.h"
#include "text/code_points.h"
#include "text/formats.h"

namespace heed::inline v0::text {
namespace {

// ggml's types of tokens.
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

// Tokens that are looked for in texts.
std::vector<AddedToken> read_gguf_added(const GgufFile& file,
                                        const std::vector<TokenEntry>& entries) {
  std::vector<AddedToken> added;
  if (!file.contains("tokenizer.ggml.token_type")) return added;
  const auto& types = file.integers("tokenizer.ggml.token_type");
  if (types.size() != entries.size()) {
    fail(file, fmt::format("tokenizer.ggml.token_type has {} values for {} tokens", types.size(),
                           entries.size()));
  }
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

}  // namespace

std::unique_ptr<const Tokenizer> tokenizer_from_gguf(const GgufFile& file) {
  const std::string& model = file.string("tokenizer.ggml.model");
  if (model != "gpt2") {
    fail(file, fmt::format("tokenizer.ggml.model is '{}', expected gpt2", io::printable(model)));
  }
  Recipe recipe = recipe_of(file);
  std::vector<TokenEntry> entries = read_gguf_tokens(file);
  PipelineParts parts;
  parts.added = read_gguf_added(file, entries);
  parts.tokens = std::make_unique<const TokenTable>(std::move(entries), std::vector<TokenEntry>{},
                                                    file.name(), 0);
  BytePairOptions options;
  options.ignores_merges = recipe.ignores_merges;
  parts.model = std::make_unique<const BytePairs>(*parts.tokens,
                                                  read_gguf_merges(file, *parts.tokens), options);
  parts.normalizer = std::move(recipe.normalizer);
  parts.pre_tokenizer = std::move(recipe.split);
  parts.decoder = decode_byte_level;
  parts.special = read_roles(file, *parts.tokens);
  parts.framing = read_gguf_framing(file, parts.special, recipe.adds_begin);
  if (file.contains("tokenizer.chat_template")) {
    parts.chat =
        recognise_template(file.string("tokenizer.chat_template"),
                           parts.special.begin ? parts.tokens->token(*parts.special.begin) : "");
  }
  return make_pipeline(std::move(parts));
}

}  // namespace heed::inline v0::text
