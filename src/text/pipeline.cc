#include <algorithm>
#include <memory>
#include <utility>

#include "io/unicode.h"
#include "text/formats.h"
#include "text/input_and_streams.h"

namespace heed { inline namespace v0 { namespace text {
namespace {

// Shows " the" as "the", "  " as "␣␣".
std::string visible_label(std::string_view text) {
  const bool is_blank = text.find_first_not_of(' ') == std::string_view::npos;
  if (!is_blank) {
    if (text.front() == ' ' && text.size() > 1 && text[1] != ' ') text.remove_prefix(1);
    return unicode::legible(text);
  }
  std::string label;
  for (std::size_t i = 0; i < text.size(); ++i) label += "␣";
  return label;
}

TextRange range_of(Span span) {
  return {static_cast<std::int64_t>(span.begin), static_cast<std::int64_t>(span.end)};
}

// True if a range shares no byte with the spans, which are in order.
bool is_outside(TextRange range, const std::vector<Span>& spans) {
  const auto behind = std::upper_bound(
      spans.begin(), spans.end(), range.begin,
      [](std::int64_t begin, Span span) { return begin < static_cast<std::int64_t>(span.end); });
  return behind == spans.end() || range.end <= static_cast<std::int64_t>(behind->begin);
}

class Pipeline : public Tokenizer {
 public:
  explicit Pipeline(PipelineParts parts) : parts_(std::move(parts)) {
    is_special_.resize(static_cast<std::size_t>(vocab_size()), false);
    for (const AddedToken& token : parts_.added) {
      if (token.is_special) is_special_[static_cast<std::size_t>(token.id)] = true;
      if (!token.is_normalized) {
        raw_.add(token, token.content);
        continue;
      }
      AlignedText content(token.content, 0);
      if (parts_.normalizer) content = parts_.normalizer(std::move(content));
      normalized_.add(token, content.bytes());
    }
  }

  std::int64_t vocab_size() const override { return parts_.tokens->size(); }

  Encoding encode(std::string_view text, const EncodeOptions& options) const override {
    check_utf8("Tokenizer::encode", text);
    return framed(parts_.framing.single, encode_text(text, options), nullptr,
                  options.add_special_tokens);
  }

  Encoding encode_pair(std::string_view first, std::string_view second,
                       const EncodeOptions& options) const override {
    if (parts_.framing.pair.empty()) return Tokenizer::encode_pair(first, second, options);
    check_utf8("Tokenizer::encode_pair", first);
    check_utf8("Tokenizer::encode_pair", second);
    const Encoding behind = encode_text(second, options);
    return framed(parts_.framing.pair, encode_text(first, options), &behind,
                  options.add_special_tokens);
  }

  std::string decode(std::span<const std::int64_t> ids,
                     const DecodeOptions& options) const override {
    return decode_by(*stream({}, options), ids);
  }

  std::unique_ptr<DecodeStream> stream(std::span<const std::int64_t> context,
                                       const DecodeOptions& options) const override {
    auto stream = after_context(std::make_unique<Stream>(*this, options), context);
    std::string held = after_context(std::make_unique<Stream>(*this, options), context)->finish();
    if (held.empty()) return stream;
    return std::make_unique<StreamWithout>(std::move(stream), std::move(held));
  }

  std::string token(std::int64_t id) const override {
    check_id("Tokenizer::token", id);
    return parts_.tokens->token(id);
  }

  std::string label(std::int64_t id) const override {
    check_id("Tokenizer::label", id);
    std::string_view token = parts_.tokens->token(id);
    const std::string& prefix = parts_.continuing_prefix;
    if (special(id)) return unicode::legible(token);
    if (!prefix.empty() && token.size() > prefix.size() && token.starts_with(prefix)) {
      return unicode::legible(token.substr(prefix.size()));
    }
    Decoding decoding(parts_.decoder);
    decoding.add(token);
    decoding.finish();
    return visible_label(decoding.take());
  }

  std::optional<std::int64_t> id(std::string_view token) const override {
    return parts_.tokens->find(token);
  }

  bool is_special(std::int64_t id) const override {
    check_id("Tokenizer::is_special", id);
    return special(id);
  }

  const SpecialTokens& special_tokens() const override { return parts_.special; }

  std::string apply_chat_template(std::span<const ChatMessage> messages,
                                  const ChatOptions& options) const override {
    return render("Tokenizer::apply_chat_template", parts_.chat, messages, options).text;
  }

  Encoding encode_chat(std::span<const ChatMessage> messages,
                       const ChatOptions& options) const override {
    const RenderedChat chat = render("Tokenizer::encode_chat", parts_.chat, messages, options);
    const auto passed = [&](TextRange range) -> std::size_t {
      return is_outside(range, chat.contents) ? 0 : 1;
    };
    return framed(parts_.framing.single, encode_text(chat.text, passed), nullptr, false);
  }

 private:
  class Stream final : public DecodeStream {
   public:
    Stream(const Pipeline& tokenizer, const DecodeOptions& options)
        : tokenizer_(tokenizer), options_(options), decoding_(tokenizer.parts_.decoder) {}

    std::string add(std::int64_t id) override {
      if (tokenizer_.is_silent(id)) return {};
      tokenizer_.check_id("Tokenizer::decode", id);
      if (options_.skip_special_tokens && tokenizer_.special(id)) return {};
      decoding_.add(tokenizer_.parts_.tokens->token(id));
      return decoding_.take();
    }
    std::string finish() override {
      decoding_.finish();
      return decoding_.take();
    }

   private:
    const Pipeline& tokenizer_;
    DecodeOptions options_;
    Decoding decoding_;
  };

  // Returns the number of bytes to skip if a special token at a range of the text must not be
  // found, or 0 to accept the token.
  using Passed = FunctionRef<std::size_t(TextRange)>;

  bool special(std::int64_t id) const { return is_special_[static_cast<std::size_t>(id)]; }

  // Also true for ids without a token, which models may have.
  bool is_silent(std::int64_t id) const {
    return id >= vocab_size() || std::binary_search(parts_.silent.begin(), parts_.silent.end(), id);
  }

  // Encodes without the tokens around the text.
  Encoding encode_text(std::string_view text, Passed passed) const {
    Encoding encoding;
    const auto passed_in_text = [&](Span span) { return passed(range_of(span)); };
    SpacesOfParts spaces;
    for (const auto& [span, token] : raw_.find(text, passed_in_text)) {
      const std::string_view bytes = text.substr(span.begin, span.end - span.begin);
      if (token != nullptr) {
        append(encoding, token->id, bytes, range_of(span), &spaces);
        continue;
      }
      AlignedText part(bytes, span.begin);
      if (parts_.normalizer) part = parts_.normalizer(std::move(part));
      encode_normalized(encoding, part, passed);
    }
    return encoding;
  }
  Encoding encode_text(std::string_view text, const EncodeOptions& options) const {
    return encode_text(text, [&](TextRange /*range*/) -> std::size_t {
      return options.parse_special_tokens ? 0 : std::string_view::npos;
    });
  }

  void encode_normalized(Encoding& encoding, const AlignedText& text, Passed passed) const {
    const auto passed_in_original = [&](Span span) {
      return passed(text.origin(span.begin, span.end));
    };
    SpacesOfParts spaces;
    for (const auto& [span, token] : normalized_.find(text.bytes(), passed_in_original)) {
      if (token != nullptr) {
        append(encoding, token->id, text.bytes().substr(span.begin, span.end - span.begin),
               text.origin(span.begin, span.end), &spaces);
        continue;
      }
      PreTokenized part{text.slice(span.begin, span.end), {{0, span.end - span.begin}}};
      if (parts_.pre_tokenizer) parts_.pre_tokenizer(part);
      encode_pieces(encoding, part);
    }
  }

  void encode_pieces(Encoding& encoding, const PreTokenized& text) const {
    std::vector<PieceToken> tokens;
    for (const Span piece : text.pieces) {
      tokens.clear();
      parts_.model->tokenize(text.text.bytes().substr(piece.begin, piece.end - piece.begin),
                             tokens);
      for (const auto& [id, begin, end] : tokens) {
        append(encoding, id, parts_.tokens->token(id),
               text.text.origin(piece.begin + begin, piece.begin + end));
      }
    }
  }

  // A token that is written as `token`; `parts` has seen those before it in the same text.
  void append(Encoding& encoding, std::int64_t id, std::string_view token, TextRange range,
              SpacesOfParts* parts = nullptr) const {
    if (parts_.framing.trimming) {
      const WrittenSpaces spaces = parts == nullptr ? spaces_of(token) : parts->of(token);
      range = trimmed(range, spaces, encoding.ids.empty(), *parts_.framing.trimming);
    }
    encoding.ids.push_back(id);
    encoding.ranges.push_back(range);
  }

  PipelineParts parts_;
  std::vector<bool> is_special_;
  AddedTokenFinder raw_;
  AddedTokenFinder normalized_;
};

}  // namespace

std::unique_ptr<const Tokenizer> make_pipeline(PipelineParts parts) {
  return std::make_unique<const Pipeline>(std::move(parts));
}

}}}  // namespace heed::v0::text
