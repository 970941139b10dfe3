#include "text/gguf_models.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/printable.h"
#include "heed/core/error.h"
#include "text/byte_pairs.h"
#include "text/code_points.h"
#include "text/decoders.h"
#include "text/score_merges.h"

namespace heed { inline namespace v0 { namespace text {
namespace {

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

}  // namespace

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

}}}  // namespace heed::v0::text
