#include "heed/text/word_tokenizer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "heed/core/error.h"
#include "io/unicode.h"
#include "text/input_and_streams.h"

namespace heed { inline namespace v0 {

namespace text {

namespace {

constexpr std::int64_t kNumBytes = 256;
constexpr std::string_view kVisibleSpace = "␣";

std::string_view first_cluster(std::string_view text) {
  return text.substr(0, text.empty() ? 0 : unicode::grapheme_size(text));
}

bool is_whitespace(std::string_view cluster) {
  // A space with a combining mark shows that mark and is not whitespace.
  return !cluster.empty() && unicode::is_whitespace(unicode::first_code_point(cluster)->value) &&
         (cluster.size() == unicode::first_code_point(cluster)->size || cluster == "\r\n");
}

bool is_ideograph(std::string_view cluster) {
  return !cluster.empty() && unicode::is_ideograph(unicode::first_code_point(cluster)->value);
}

bool is_word(std::string_view cluster) {
  return !cluster.empty() && !is_ideograph(cluster) &&
         unicode::is_word_character(unicode::first_code_point(cluster)->value);
}

bool joins_words(std::string_view cluster) {
  return cluster == "'" || cluster == "’" || cluster == "-" || cluster == "‐" || cluster == "‑";
}

std::size_t whitespace_size(std::string_view text) {
  std::size_t size = 0;
  for (auto cluster = first_cluster(text); is_whitespace(cluster);
       cluster = first_cluster(text.substr(size))) {
    size += cluster.size();
  }
  return size;
}

// The number of bytes of the word or single character that `text` starts with; 0 for an empty text.
std::size_t visible_size(std::string_view text) {
  auto cluster = first_cluster(text);
  std::size_t size = cluster.size();
  if (!is_word(cluster)) return size;
  while (true) {
    cluster = first_cluster(text.substr(size));
    const std::size_t joiner = joins_words(cluster) ? cluster.size() : 0;
    if (joiner != 0) cluster = first_cluster(text.substr(size + joiner));
    if (!is_word(cluster)) return size;
    size += joiner + cluster.size();
  }
}

std::string_view first_piece(std::string_view text) {
  const std::size_t spaces = whitespace_size(text);
  const bool attaches = spaces > 0 && spaces < text.size() && text[spaces - 1] == ' ';
  if (attaches && spaces > 1) return text.substr(0, spaces - 1);
  if (spaces > 0 && !attaches) return text.substr(0, spaces);
  return text.substr(0, spaces + visible_size(text.substr(spaces)));
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> pieces;
  while (!text.empty()) {
    pieces.push_back(first_piece(text));
    text.remove_prefix(pieces.back().size());
  }
  return pieces;
}

// The text as it is split: preceded by a space, unless it starts with an ideograph.
std::string with_imagined_space(const char* function, std::string_view text) {
  check_utf8(function, text);
  const bool needs_space = !text.empty() && !is_ideograph(first_cluster(text));
  return std::string(needs_space ? 1 : 0, ' ').append(text);
}

void append(Encoding& encoding, std::int64_t id, std::size_t begin, std::size_t end) {
  encoding.ids.push_back(id);
  encoding.ranges.push_back({static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end)});
}

}  // namespace

WordTokenizer::WordTokenizer(std::string_view text)
    : WordTokenizer(std::span<const std::string_view>(&text, 1)) {}

WordTokenizer::WordTokenizer(std::initializer_list<std::string_view> texts)
    : WordTokenizer(std::span<const std::string_view>(texts.begin(), texts.size())) {}

WordTokenizer::WordTokenizer(std::span<const std::string_view> texts) {
  for (const std::string_view text : texts) {
    const std::string spaced = with_imagined_space("WordTokenizer", text);
    for (const std::string_view piece : split(spaced)) {
      if (ids_.emplace(piece, vocab_size()).second) pieces_.emplace_back(piece);
    }
  }
}

Encoding WordTokenizer::encode(std::string_view text, const EncodeOptions& /*options*/) const {
  const std::string spaced = with_imagined_space("WordTokenizer::encode", text);
  Encoding encoding;
  std::size_t imagined = spaced.size() - text.size();
  std::size_t begin = 0;  // of the piece in the text
  bool is_first = true;
  for (std::string_view piece : split(spaced)) {
    const auto found = ids_.find(piece);
    piece.remove_prefix(imagined);
    // decode drops the leading space of the first piece. The bytes at the beginning therefore
    // exclude the added space, and if no byte is left, the next piece must be encoded as bytes,
    // too.
    if (found != ids_.end() && (is_first || !encoding.ids.empty())) {
      append(encoding, found->second, begin, begin + piece.size());
    } else {
      for (std::size_t i = 0; i < piece.size(); ++i) {
        append(encoding, static_cast<unsigned char>(piece[i]), begin + i, begin + i + 1);
      }
    }
    begin += piece.size();
    imagined = 0;
    is_first = false;
  }
  encoding.type_ids.assign(encoding.ids.size(), 0);
  return encoding;
}

std::string WordTokenizer::decode(std::span<const std::int64_t> ids,
                                  const DecodeOptions& options) const {
  return decode_by(*stream({}, options), ids);
}

std::unique_ptr<DecodeStream> WordTokenizer::stream(std::span<const std::int64_t> context,
                                                    const DecodeOptions& /*options*/) const {
  const auto piece = [this, is_first = true](std::int64_t id) mutable {
    check_id("WordTokenizer::decode", id);
    std::string text = token(id);
    const bool has_imagined_space =
        std::exchange(is_first, false) && id >= kNumBytes && text.front() == ' ';
    return has_imagined_space ? text.substr(1) : text;
  };
  return after_context(std::make_unique<JoinedStream>(piece), context);
}

std::int64_t WordTokenizer::vocab_size() const {
  return kNumBytes + static_cast<std::int64_t>(pieces_.size());
}

std::string WordTokenizer::token(std::int64_t id) const {
  check_id("WordTokenizer::token", id);
  if (id < kNumBytes) return std::string(1, static_cast<char>(id));
  return pieces_[static_cast<std::size_t>(id - kNumBytes)];
}

std::string WordTokenizer::label(std::int64_t id) const {
  check_id("WordTokenizer::label", id);
  const std::string token = this->token(id);
  if (id >= 0x80 && id < kNumBytes) return unicode::legible(token);
  std::string_view rest = token;
  if (whitespace_size(rest) < rest.size()) {
    if (rest.front() == ' ') rest.remove_prefix(1);
    return unicode::legible(rest);
  }
  std::string label;
  while (const auto space = unicode::first_code_point(rest)) {
    label += space->value == U' ' ? std::string(kVisibleSpace) : unicode::escaped(space->value);
    rest.remove_prefix(space->size);
  }
  return label;
}

std::optional<std::int64_t> WordTokenizer::id(std::string_view token) const {
  const auto found = ids_.find(token);
  if (found != ids_.end()) return found->second;
  if (token.size() == 1) return static_cast<unsigned char>(token.front());
  return std::nullopt;
}

}  // namespace text

Tensor<std::int64_t> to_ids(std::span<const std::string_view> tokens,
                            std::span<const std::string_view> vocab) {
  Tensor<std::int64_t> ids(Shape{static_cast<std::int64_t>(tokens.size())});
  std::int64_t* id = ids.data();
  for (const std::string_view token : tokens) {
    const auto found = std::find(vocab.begin(), vocab.end(), token);
    if (found == vocab.end()) {
      throw InvalidArgument(fmt::format("to_ids: token \"{}\" is not in the vocabulary (\"{}\")",
                                        unicode::legible(token), fmt::join(vocab, "\", \"")));
    }
    *id++ = found - vocab.begin();
  }
  return ids;
}

Tensor<std::int64_t> to_ids(std::initializer_list<std::string_view> tokens,
                            std::span<const std::string_view> vocab) {
  return to_ids(std::span<const std::string_view>(tokens.begin(), tokens.size()), vocab);
}

}}  // namespace heed::v0
