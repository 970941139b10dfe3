#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/printable.h"
#include "text/formats.h"
#include "text/token_models.h"
#include "text/unigram.h"

namespace heed { inline namespace v0 { namespace text {
namespace {

using io::JsonKind;
using io::JsonPart;
using io::JsonValue;
using io::printable;

std::vector<TokenEntry> read_vocabulary(const JsonPart& part) {
  if (!part.is(JsonKind::kObject)) part.fail(" is not an object");
  const JsonValue& object = part.value();
  std::vector<TokenEntry> entries;
  entries.reserve(object.items.size());
  for (std::size_t i = 0; i < object.items.size(); ++i) {
    if (object.items[i].kind != JsonKind::kInteger) {
      part.fail(fmt::format(" has no integer for '{}'", printable(object.keys[i])));
    }
    entries.push_back({object.keys[i], object.items[i].integer});
  }
  return entries;
}

std::unique_ptr<const TokenTable> table_of(const JsonPart& part, std::vector<TokenEntry> model,
                                           const std::vector<AddedToken>& added) {
  std::vector<TokenEntry> entries;
  entries.reserve(added.size());
  for (const AddedToken& token : added) entries.push_back({token.content, token.id});
  return std::make_unique<const TokenTable>(std::move(model), entries, part.file(),
                                            part.value().byte);
}

std::unique_ptr<const TokenTable> read_tokens(const JsonPart& part,
                                              const std::vector<AddedToken>& added) {
  return table_of(part, read_vocabulary(part), added);
}

std::int64_t read_token(const JsonPart& part, const TokenTable& tokens) {
  const auto id = tokens.find(part.string());
  if (!id) part.fail(fmt::format(" is '{}', which is no token", printable(part.string())));
  return *id;
}

void read_word_piece(const JsonPart& part, PipelineParts& parts) {
  constexpr std::int64_t kMostCharacters = 1000;  // limits the time for a long word
  parts.tokens = read_tokens(part.at("vocab"), parts.added);
  WordPieceOptions options;
  options.unknown = read_token(part.at("unk_token"), *parts.tokens);
  options.prefix = part.string_or("continuing_subword_prefix", "##");
  if (const auto most = part.find("max_input_chars_per_word")) {
    options.max_characters = most->integer();
    if (options.max_characters < 1 || options.max_characters > kMostCharacters) {
      most->fail(fmt::format(" is {}, expected 1 to {}", options.max_characters, kMostCharacters));
    }
  }
  parts.special.unknown = options.unknown;
  parts.continuing_prefix = options.prefix;
  parts.model = std::make_unique<const WordPiece>(*parts.tokens, options);
}

// Reads the two tokens of "a b" or ["a", "b"].
std::pair<std::string_view, std::string_view> read_pair(const JsonPart& part,
                                                        const JsonValue& merge) {
  if (merge.kind == JsonKind::kArray && merge.items.size() == 2 &&
      merge.items[0].kind == JsonKind::kString && merge.items[1].kind == JsonKind::kString) {
    return {merge.items[0].text, merge.items[1].text};
  }
  const std::string_view text = merge.text;
  const std::size_t space = text.find(' ');
  if (merge.kind != JsonKind::kString || space == text.npos || text.rfind(' ') != space) {
    JsonPart(part.file(), merge, "a merge").fail(" is not two tokens");
  }
  return {text.substr(0, space), text.substr(space + 1)};
}

std::vector<BytePairs::Merge> read_merges(const JsonPart& part, const TokenTable& tokens,
                                          std::string_view prefix) {
  if (!part.is(JsonKind::kArray)) part.fail(" is not an array");
  std::vector<BytePairs::Merge> merges;
  merges.reserve(part.value().items.size());
  for (const JsonValue& merge : part.value().items) {
    if (merge.kind == JsonKind::kString && merge.text.starts_with("#version")) continue;
    const auto [first, second] = read_pair(part, merge);
    const auto id_of = [&](std::string_view token) {
      const auto id = tokens.find_in_model(token);
      if (!id) {
        JsonPart(part.file(), merge, "a merge")
            .fail(fmt::format(" needs the token '{}', which is none", printable(token)));
      }
      return *id;
    };
    const bool continues = !prefix.empty() && second.starts_with(prefix);
    const std::string made =
        std::string(first).append(second.substr(continues ? prefix.size() : 0));
    merges.push_back({id_of(first), id_of(second), id_of(made)});
  }
  return merges;
}

void read_byte_pairs(const JsonPart& part, PipelineParts& parts) {
  parts.tokens = read_tokens(part.at("vocab"), parts.added);
  if (const auto dropout = part.find("dropout"); dropout && dropout->value().number != 0) {
    dropout->fail(" is not 0: heed encodes a text in one way only");
  }
  BytePairOptions options;
  if (const auto unknown = part.find("unk_token")) {
    options.unknown = read_token(*unknown, *parts.tokens);
  }
  options.fuses_unknown = part.boolean_or("fuse_unk", false);
  options.falls_back = part.boolean_or("byte_fallback", false);
  options.ignores_merges = part.boolean_or("ignore_merges", false);
  options.prefix = part.string_or("continuing_subword_prefix", "");
  options.suffix = part.string_or("end_of_word_suffix", "");
  parts.special.unknown = options.unknown;
  parts.model = std::make_unique<const BytePairs>(
      *parts.tokens, read_merges(part.at("merges"), *parts.tokens, options.prefix), options);
}

void read_word_level(const JsonPart& part, PipelineParts& parts) {
  parts.tokens = read_tokens(part.at("vocab"), parts.added);
  const std::int64_t unknown = read_token(part.at("unk_token"), *parts.tokens);
  parts.special.unknown = unknown;
  parts.model = std::make_unique<const WordLevel>(*parts.tokens, unknown);
}

// A token of a unigram model and its score.
struct ScoredToken {
  std::string token;
  double score;
};

// Reads [["▁the", -3.2], …].
std::vector<ScoredToken> read_scored_tokens(const JsonPart& part) {
  constexpr double kGreatest = 1e30;  // sums of scores stay finite
  if (!part.is(JsonKind::kArray)) part.fail(" is not an array");
  std::vector<ScoredToken> tokens;
  tokens.reserve(part.value().items.size());
  for (const JsonValue& item : part.value().items) {
    const bool is_pair =
        item.kind == JsonKind::kArray && item.items.size() == 2 &&
        item.items[0].kind == JsonKind::kString &&
        (item.items[1].kind == JsonKind::kNumber || item.items[1].kind == JsonKind::kInteger);
    const JsonPart entry(part.file(), item, "an entry of model.vocab");
    if (!is_pair) entry.fail(" is not a token and its score");
    const auto& [token, score] =
        tokens.emplace_back(ScoredToken{item.items[0].text, item.items[1].number});
    if (token.empty() || token.size() > Unigram::kLongest) {
      entry.fail(fmt::format(" has a token of {} bytes, expected 1 to {}", token.size(),
                             Unigram::kLongest));
    }
    if (!(std::abs(score) <= kGreatest)) {
      entry.fail(fmt::format(" has the score {}, expected at most {}", score, kGreatest));
    }
  }
  if (tokens.empty()) part.fail(" has no tokens");
  return tokens;
}

// Special tokens are not part of texts, though they have scores: as in SentencePiece, a text that
// is normalised to "</s>" does not end there.
void read_unigram(const JsonPart& part, PipelineParts& parts) {
  constexpr double kPenalty = 10;  // SentencePiece's
  const std::vector<ScoredToken> scored = read_scored_tokens(part.at("vocab"));
  std::vector<TokenEntry> entries;
  entries.reserve(scored.size());
  UnigramOptions options;
  options.unknown_score = scored.front().score;
  for (const auto& [token, score] : scored) {
    entries.push_back({token, static_cast<std::int64_t>(entries.size())});
    options.unknown_score = std::min(options.unknown_score, score);
  }
  options.unknown_score -= kPenalty;
  parts.tokens = table_of(part.at("vocab"), std::move(entries), parts.added);
  const JsonPart unknown = part.at("unk_id");
  options.unknown = unknown.integer();
  const auto size = static_cast<std::int64_t>(scored.size());
  if (options.unknown < 0 || options.unknown >= size) {
    unknown.fail(fmt::format(" is {}, expected 0 <= id < {}", options.unknown, size));
  }
  options.falls_back = part.boolean_or("byte_fallback", false);
  std::vector<bool> is_special(scored.size(), false);
  for (const AddedToken& token : parts.added) {
    if (token.is_special && token.id < size) is_special[static_cast<std::size_t>(token.id)] = true;
  }
  std::vector<Unigram::Piece> pieces;
  for (std::size_t i = 0; i < scored.size(); ++i) {
    if (!is_special[i]) pieces.push_back({static_cast<std::int64_t>(i), scored[i].score});
  }
  parts.special.unknown = options.unknown;
  parts.model = std::make_unique<const Unigram>(*parts.tokens, pieces, options);
}

}  // namespace

std::vector<AddedToken> read_added_tokens(const JsonPart& part) {
  std::vector<AddedToken> tokens;
  for (const JsonPart& item : part.items()) {
    AddedToken token;
    token.content = item.at("content").string();
    if (token.content.empty() || token.content.size() > AddedTokenFinder::kLongest) {
      item.at("content").fail(fmt::format(" has {} bytes, expected 1 to {}", token.content.size(),
                                          AddedTokenFinder::kLongest));
    }
    token.id = item.at("id").integer();
    token.is_special = item.boolean_or("special", false);
    token.is_normalized = item.boolean_or("normalized", !token.is_special);
    token.is_word = item.boolean_or("single_word", false);
    token.strips_left = item.boolean_or("lstrip", false);
    token.strips_right = item.boolean_or("rstrip", false);
    tokens.push_back(std::move(token));
  }
  return tokens;
}

void read_model(const JsonPart& part, PipelineParts& parts) {
  using Read = void (*)(const JsonPart&, PipelineParts&);
  constexpr std::array<std::pair<std::string_view, Read>, 4> kModels{
      {{"BPE", read_byte_pairs},
       {"Unigram", read_unigram},
       {"WordLevel", read_word_level},
       {"WordPiece", read_word_piece}}};
  // Files of early versions do not name the model's type.
  const auto type = part.find("type");
  const std::string name = type ? type->string() : part.find("merges") ? "BPE" : "WordPiece";
  for (const auto& [known, read] : kModels) {
    if (known != name) continue;
    read(part, parts);
    return;
  }
  fail_unknown(*type);
}

}}}  // namespace heed::v0::text
