#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "core/printable.h"
#include "heed/core/error.h"
#include "io/unicode.h"
#include "text/formats.h"
#include "text/word_piece.h"

namespace heed { inline namespace v0 { namespace text {
namespace {

std::vector<TokenEntry> read_lines(std::string_view text, const std::string& file) {
  if (const auto invalid = unicode::find_invalid(text)) {
    throw FormatError(file, static_cast<std::int64_t>(*invalid), "not valid UTF-8");
  }
  std::vector<TokenEntry> entries;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    entries.push_back({std::string(line), static_cast<std::int64_t>(entries.size())});
    at = end + 1;
  }
  return entries;
}

void check_class(const std::string& name, const std::string& file) {
  constexpr std::array<std::string_view, 3> kKnown{"BertTokenizer", "DistilBertTokenizer",
                                                   "ElectraTokenizer"};
  const std::string_view plain =
      std::string_view(name).substr(0, name.ends_with("Fast") ? name.size() - 4 : name.size());
  if (name.empty() || std::find(kKnown.begin(), kKnown.end(), plain) != kKnown.end()) return;
  throw FormatError(file, 0,
                    fmt::format("tokenizer_config.json names the class '{}', expected one of BERT: "
                                "BertTokenizer, DistilBertTokenizer, ElectraTokenizer",
                                io::printable(name)));
}

}  // namespace

std::unique_ptr<const Tokenizer> tokenizer_from_vocabulary(std::string_view text,
                                                           const std::string& file,
                                                           const TokenizerConfig& config) {
  check_class(config.tokenizer_class, file);
  PipelineParts parts;
  parts.tokens = std::make_unique<const TokenTable>(read_lines(text, file),
                                                    std::vector<TokenEntry>{}, file, 0);
  const auto id_of = [&](const std::optional<std::string>& said, const char* otherwise) {
    const std::string token = said.value_or(otherwise);
    if (const auto id = parts.tokens->find(token)) return *id;
    throw FormatError(file, static_cast<std::int64_t>(text.size()),
                      fmt::format("the token '{}' is missing", io::printable(token)));
  };
  WordPieceOptions options;
  options.unknown = id_of(config.unknown, "[UNK]");
  const std::int64_t cls = id_of(config.begin, "[CLS]");
  const std::int64_t sep = id_of(config.separator, "[SEP]");

  std::set<std::int64_t> special{options.unknown, cls, sep};
  for (const auto& [said, name] : {std::pair(config.padding, "[PAD]"), {config.mask, "[MASK]"}}) {
    if (const auto id = parts.tokens->find(said.value_or(name))) special.insert(*id);
  }
  for (const std::int64_t id : special) {
    AddedToken token;
    token.content = parts.tokens->token(id);
    token.id = id;
    token.is_special = true;
    parts.added.push_back(std::move(token));
  }
  using Kind = FramePart::Kind;
  parts.framing.single = {{Kind::kToken, cls, 0}, {Kind::kFirstText, 0, 0}, {Kind::kToken, sep, 0}};
  parts.framing.pair = parts.framing.single;
  parts.framing.pair.push_back({Kind::kSecondText, 0, 1});
  parts.framing.pair.push_back({Kind::kToken, sep, 1});
  parts.normalizer = [bert = config.bert](AlignedText normalized) {
    return normalize_bert(std::move(normalized), bert);
  };
  parts.pre_tokenizer = split_bert;
  parts.decoder = word_piece_decoder("##", true);
  parts.continuing_prefix = options.prefix;
  parts.special.unknown = options.unknown;
  parts.model = std::make_unique<const WordPiece>(*parts.tokens, options);
  apply_config(parts, config);
  return make_pipeline(std::move(parts));
}

}}}  // namespace heed::v0::text
