#include "heed/text/tokenizer.h"

#include <fmt/format.h>

#include "heed/core/error.h"
#include "io/unicode.h"

namespace heed { inline namespace v0 { namespace text {

namespace {

// The stream of any tokenizer. Its text comes only at the end, because a later id may change the
// text of earlier ones.
class WholeStream final : public DecodeStream {
 public:
  WholeStream(const Tokenizer& tokenizer, std::span<const std::int64_t> context,
              const DecodeOptions& options)
      : tokenizer_(tokenizer),
        options_(options),
        ids_(context.begin(), context.end()),
        context_(tokenizer.decode(context, options)) {}

  std::string add(std::int64_t id) override {
    if (id < 0 || id >= tokenizer_.vocab_size()) tokenizer_.decode({&id, 1}, options_);
    ids_.push_back(id);
    return {};
  }
  std::string finish() override {
    const std::string text = tokenizer_.decode(ids_, options_);
    return text.starts_with(context_) ? text.substr(context_.size()) : text;
  }

 private:
  const Tokenizer& tokenizer_;
  DecodeOptions options_;
  std::vector<std::int64_t> ids_;
  std::string context_;
};

}  // namespace

DecodeStream::~DecodeStream() = default;

Tokenizer::~Tokenizer() = default;

std::unique_ptr<DecodeStream> Tokenizer::stream(std::span<const std::int64_t> context,
                                                const DecodeOptions& options) const {
  return std::make_unique<WholeStream>(*this, context, options);
}

Encoding Tokenizer::encode_pair(std::string_view, std::string_view, const EncodeOptions&) const {
  throw InvalidArgument("Tokenizer::encode_pair: this tokenizer has no form for pairs");
}

std::string Tokenizer::label(std::int64_t id) const { return unicode::legible(token(id)); }

bool Tokenizer::is_special(std::int64_t id) const {
  check_id("Tokenizer::is_special", id);
  return false;
}

const SpecialTokens& Tokenizer::special_tokens() const {
  static const SpecialTokens none;
  return none;
}

std::string Tokenizer::apply_chat_template(std::span<const ChatMessage>, const ChatOptions&) const {
  throw InvalidArgument("Tokenizer::apply_chat_template: the tokenizer has no template");
}

Encoding Tokenizer::encode_chat(std::span<const ChatMessage>, const ChatOptions&) const {
  throw InvalidArgument("Tokenizer::encode_chat: the tokenizer has no template");
}

std::vector<std::int64_t> Tokenizer::ids(std::string_view text,
                                         const EncodeOptions& options) const {
  return encode(text, options).ids;
}

std::vector<std::string> Tokenizer::tokens(std::span<const std::int64_t> ids) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const std::int64_t id : ids) tokens.push_back(token(id));
  return tokens;
}

std::vector<std::string> Tokenizer::labels(std::span<const std::int64_t> ids) const {
  std::vector<std::string> labels;
  labels.reserve(ids.size());
  for (const std::int64_t id : ids) labels.push_back(label(id));
  return labels;
}

void Tokenizer::check_id(const char* function, std::int64_t id) const {
  if (id >= 0 && id < vocab_size()) return;
  throw InvalidArgument(
      fmt::format("{}: the id is {}, expected 0 <= id < {}", function, id, vocab_size()));
}

}}}  // namespace heed::v0::text
