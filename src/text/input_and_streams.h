// What all tokenizers share: the check of their input, and streams whose text is the concatenation
// of the texts of their tokens.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "heed/core/error.h"
#include "heed/text/tokenizer.h"
#include "io/unicode.h"

namespace heed { inline namespace v0 { namespace text {

// Throws InvalidArgument, naming `function`, if the text is not valid UTF-8.
inline void check_utf8(const char* function, std::string_view text) {
  if (const auto offset = unicode::find_invalid(text)) {
    throw InvalidArgument(fmt::format("{}: the text is not valid UTF-8 at byte {}, 0x{:02X}",
                                      function, *offset,
                                      static_cast<unsigned char>(text[*offset])));
  }
}

class JoinedStream final : public DecodeStream {
 public:
  // Returns the text of a token. It may have a state.
  using Piece = std::function<std::string(std::int64_t id)>;

  explicit JoinedStream(Piece piece) : piece_(std::move(piece)) {}

  std::string add(std::int64_t id) override { return piece_(id); }
  std::string finish() override { return {}; }

 private:
  Piece piece_;
};

// A stream that removes `begin` from the beginning of the text, if it is there. This is the text
// that the decoder held back at the end of a context, whose own text already contains it.
class StreamWithout final : public DecodeStream {
 public:
  StreamWithout(std::unique_ptr<DecodeStream> stream, std::string begin)
      : stream_(std::move(stream)), begin_(std::move(begin)) {}

  std::string add(std::int64_t id) override { return without_begin(stream_->add(id)); }
  std::string finish() override {
    std::string rest = without_begin(stream_->finish());
    return rest.empty() ? text_ : rest;
  }

 private:
  std::string without_begin(std::string piece) {
    if (begin_.empty()) return piece;
    text_ += piece;
    if (text_.size() < begin_.size() && begin_.starts_with(text_)) return {};
    if (text_.starts_with(begin_)) text_.erase(0, begin_.size());
    begin_.clear();
    return std::exchange(text_, {});
  }

  std::unique_ptr<DecodeStream> stream_;
  std::string begin_;
  std::string text_;  // kept as long as it may be part of `begin`
};

// Decodes all ids with a stream.
inline std::string decode_by(DecodeStream& stream, std::span<const std::int64_t> ids) {
  std::string text;
  for (const std::int64_t id : ids) text += stream.add(id);
  return text += stream.finish();
}

// Returns the stream after it has decoded a context.
inline std::unique_ptr<DecodeStream> after_context(std::unique_ptr<DecodeStream> stream,
                                                   std::span<const std::int64_t> context) {
  for (const std::int64_t id : context) stream->add(id);
  return stream;
}

}}}  // namespace heed::v0::text
