#include "text/gguf_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/printable.h"
#include "heed/core/error.h"
#include "text/character_map.h"
#include "text/gguf_splits.h"
#include "text/unigram.h"

namespace heed { inline namespace v0 { namespace text {
namespace {

void check_gguf_count(io::GgufKeys& keys, std::string_view key, std::size_t count,
                      std::size_t num_tokens) {
  if (count == num_tokens) return;
  fail_in_gguf(keys,
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
      fail_in_gguf(keys,
                   fmt::format("tokenizer.ggml.merges: '{}' is not two tokens that make a third",
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

// Refuses keys for text normalisation that a model does not read.
void refuse_spaces_rule(io::GgufKeys& keys) {
  keys.expect_flag("ggml.remove_extra_whitespaces", false, "texts are encoded as they are");
}
void refuse_case_rules(io::GgufKeys& keys) {
  for (const char* key : {"ggml.normalizer.lowercase", "ggml.normalizer.strip_accents"}) {
    keys.expect_flag(key, false, "texts are encoded as they are");
  }
}

// The score of each token, none of which is NaN.
const std::vector<double>& read_gguf_scores(io::GgufKeys& keys, std::size_t num_tokens) {
  constexpr std::string_view kKey = "ggml.scores";
  const std::vector<double>& scores = keys.numbers(kKey);
  check_gguf_count(keys, kKey, scores.size(), num_tokens);
  const auto nan = std::find_if(scores.begin(), scores.end(),
                                [](double score) { return !std::isfinite(score); });
  if (nan != scores.end()) {
    fail_in_gguf(keys, fmt::format("{}[{}] is {}", keys.name_of(kKey), nan - scores.begin(), *nan));
  }
  return scores;
}

// Refuses a token whose size would make reading a text slow.
void check_gguf_size(io::GgufKeys& keys, const TokenTable& tokens, std::int64_t id) {
  constexpr std::size_t kLongest = 1024;
  const std::size_t size = tokens.token(id).size();
  if (size <= kLongest) return;
  fail_in_gguf(keys, fmt::format("token {} has {} bytes, expected at most {}", id, size, kLongest));
}

std::vector<BytePairs::Merge> read_merges_of_scores(io::GgufKeys& keys, const TokenTable& tokens) {
  const auto num_tokens = static_cast<std::size_t>(tokens.size());
  const std::vector<double>& scores = read_gguf_scores(keys, num_tokens);
  const std::vector<std::int64_t> types = read_gguf_types(keys, num_tokens);
  std::vector<bool> is_made(num_tokens);
  for (std::size_t i = 0; i < num_tokens; ++i) {
    is_made[i] = types[i] == kNormalToken;
    if (is_made[i]) check_gguf_size(keys, tokens, static_cast<std::int64_t>(i));
  }
  return merges_of_scores(tokens, scores, is_made);
}

// The map of "t5", as a normaliser; empty if the file has none.
Normalizer read_gguf_map(io::GgufKeys& keys) {
  constexpr std::string_view kKey = "ggml.precompiled_charsmap";
  if (!keys.has(kKey)) return {};
  std::string bytes;
  for (const std::int64_t byte : keys.integers(kKey)) bytes += static_cast<char>(byte);
  if (const std::string problem = CharacterMap::problem_of(bytes); !problem.empty()) {
    fail_in_gguf(keys, keys.name_of(kKey) + " " + problem);
  }
  return [map = std::make_shared<const CharacterMap>(bytes)](const AlignedText& text) {
    return replace_longest(text, *map);
  };
}

// SentencePiece's rules for spaces: a mark before each word, or one for each space and before the
// first word.
Normalizer marking_words(bool merges_spaces, bool has_first) {
  return [=](const AlignedText& text) {
    AlignedWriter writer(text);
    bool needs_mark = has_first;
    bool is_in_word = false;
    for (std::size_t at = 0; at < text.size(); ++at) {
      const bool is_space = text.bytes()[at] == ' ';
      if (is_space && !merges_spaces) writer.put(kSpaceMark, text.origin(at));
      if (!is_space) {
        const std::int64_t begin = text.origin(at).begin;
        const bool begins = !is_in_word && (needs_mark || merges_spaces);
        // The mark of a word behind spaces is the last of these.
        const TextRange origin =
            at > 0 && merges_spaces ? text.origin(at - 1) : TextRange{begin, begin};
        if (begins) writer.put(kSpaceMark, origin);
        needs_mark = needs_mark && !begins;
        writer.copy(at, at + 1);
      }
      is_in_word = !is_space;
    }
    return writer.take();
  };
}

}  // namespace

void fail_in_gguf(io::GgufKeys& keys, const std::string& problem) {
  throw FormatError(keys.file().name(), 0, problem);
}

std::vector<std::int64_t> read_gguf_types(io::GgufKeys& keys, std::size_t num_tokens) {
  constexpr std::string_view kKey = "ggml.token_type";
  if (!keys.has(kKey)) return std::vector<std::int64_t>(num_tokens, kNormalToken);
  const auto& types = keys.integers(kKey);
  check_gguf_count(keys, kKey, types.size(), num_tokens);
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i] >= kUndefinedToken && types[i] <= kByteToken) continue;
    fail_in_gguf(keys, fmt::format("{}[{}] is {}, expected 0 to {}", keys.name_of(kKey), i,
                                   types[i], static_cast<std::int64_t>(kByteToken)));
  }
  return types;
}

GgufEnds add_byte_level(io::GgufKeys& keys, PipelineParts& parts) {
  const std::string name = keys.string("ggml.pre", "default");
  const GgufSplit* split = find_gguf_split(name);
  if (split == nullptr) keys.fail("ggml.pre", "one of " + gguf_split_names());
  keys.expect_flag("ggml.add_space_prefix", false, "texts over bytes begin as they are");
  keys.ignore("ggml.scores");  // merges are ranked by their order
  refuse_spaces_rule(keys);
  refuse_case_rules(keys);
  BytePairOptions options;
  options.ignores_merges = split->ignores_merges;
  parts.model = std::make_unique<const BytePairs>(*parts.tokens,
                                                  read_gguf_merges(keys, *parts.tokens), options);
  parts.pre_tokenizer = pre_tokenizer_of(*split);
  parts.decoder = byte_level_decoder();
  return {.adds_begin = split->adds_begin};
}

GgufEnds add_sentence_piece(io::GgufKeys& keys, PipelineParts& parts) {
  keys.ignore("ggml.pre");     // texts are not split
  keys.ignore("ggml.merges");  // merges follow from scores
  refuse_spaces_rule(keys);
  refuse_case_rules(keys);
  BytePairOptions options;
  options.unknown = parts.special.unknown;
  options.fuses_unknown = true;
  options.falls_back = true;
  parts.model = std::make_unique<const BytePairs>(
      *parts.tokens, read_merges_of_scores(keys, *parts.tokens), options);
  const bool has_first = keys.boolean("ggml.add_space_prefix", true);
  parts.normalizer = marking_spaces(has_first);
  parts.decoder = spaces_from_marks(has_first);
  return {.adds_begin = true};
}

GgufEnds add_unigram(io::GgufKeys& keys, PipelineParts& parts) {
  constexpr float kPenalty = 10;  // SentencePiece's
  keys.ignore("ggml.pre");        // texts are not split
  refuse_case_rules(keys);
  if (!parts.special.unknown) keys.fail("ggml.unknown_token_id", "the token of unknown characters");
  const auto num_tokens = static_cast<std::size_t>(parts.tokens->size());
  const std::vector<double>& scores = read_gguf_scores(keys, num_tokens);
  const std::vector<std::int64_t> types = read_gguf_types(keys, num_tokens);
  float least = std::numeric_limits<float>::max();
  std::vector<Unigram::Piece> pieces;
  for (std::size_t i = 0; i < num_tokens; ++i) {
    const auto id = static_cast<std::int64_t>(i);
    if (types[i] == kNormalToken) least = std::min(least, static_cast<float>(scores[i]));
    const bool is_in_text =
        types[i] == kNormalToken || types[i] == kUserToken || types[i] == kUnusedToken;
    if (!is_in_text || parts.tokens->token(id).empty()) continue;
    check_gguf_size(keys, *parts.tokens, id);
    pieces.push_back({id, types[i] == kUserToken ? 0 : scores[i]});
  }
  if (pieces.empty()) fail_in_gguf(keys, "no token is part of a text");
  UnigramOptions options;
  options.unknown = *parts.special.unknown;
  options.unknown_score = least - kPenalty;
  parts.model = std::make_unique<const Unigram>(*parts.tokens, pieces, options);
  const bool has_first = keys.boolean("ggml.add_space_prefix", true);
  const bool merges_spaces = keys.boolean("ggml.remove_extra_whitespaces", false);
  if (merges_spaces && !has_first) {
    keys.fail("ggml.add_space_prefix", "true beside remove_extra_whitespaces");
  }
  parts.normalizer = [map = read_gguf_map(keys),
                      mark = marking_words(merges_spaces, has_first)](AlignedText text) {
    if (map) text = map(std::move(text));
    return mark(std::move(text));
  };
  parts.decoder = spaces_from_marks(has_first);
  return {.adds_end = true};
}

GgufEnds add_words(io::GgufKeys& keys, PipelineParts& parts) {
  keys.ignore("ggml.pre");     // texts are split by one rule
  keys.ignore("ggml.merges");  // some converters write an empty list
  keys.ignore("ggml.scores");
  keys.expect_flag("ggml.add_space_prefix", false, "words are marked in another way");
  refuse_spaces_rule(keys);
  if (!parts.special.unknown) keys.fail("ggml.unknown_token_id", "the token of unknown words");
  for (std::int64_t id = 0; id < parts.tokens->size(); ++id) {
    check_gguf_size(keys, *parts.tokens, id);
  }
  WordPieceOptions options;
  options.unknown = *parts.special.unknown;
  options.first_prefix = kSpaceMark;
  options.prefix.clear();
  options.max_characters = std::numeric_limits<std::int64_t>::max();
  parts.model = std::make_unique<const WordPiece>(*parts.tokens, options);
  BertNormalization bert;
  bert.lowers = keys.boolean("ggml.normalizer.lowercase", true);
  bert.strips_accents = keys.boolean("ggml.normalizer.strip_accents", bert.lowers);
  parts.normalizer = [bert](AlignedText text) { return normalize_bert(std::move(text), bert); };
  parts.pre_tokenizer = split_bert;
  parts.decoder = decoders_of({marks_decoder(kSpaceMark, true), english_decoder()});
  return {.adds_begin = true, .adds_end = true, .ends_with_separator = true};
}

}}}  // namespace heed::v0::text
