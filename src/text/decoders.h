// Decoders, which turn tokens back into a text. Tokens arrive as parts, in sequence. Each step
// passes parts, which it may change, to the next step; the output of the last step is concatenated.
// A step passes bytes on as soon as no later token can change them, so that a text can be shown
// while it is generated.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace heed { inline namespace v0 { namespace text {

// A receiver of parts.
class PartSink {
 public:
  PartSink() = default;
  virtual ~PartSink() = default;
  PartSink(const PartSink&) = delete;
  PartSink& operator=(const PartSink&) = delete;

  // Receives more bytes of the current part, which begins after the end of the previous one.
  virtual void write(std::string_view bytes) = 0;
  virtual void end_part() = 0;
  // The end: no more parts follow.
  virtual void finish() = 0;
};

// Passes everything on; derived classes override what they change.
class DecodeStep : public PartSink {
 public:
  void hand_on_to(PartSink& next) noexcept { next_ = &next; }
  void write(std::string_view bytes) override { next_->write(bytes); }
  void end_part() override { next_->end_part(); }
  void finish() override { next_->finish(); }

 protected:
  PartSink& next() noexcept { return *next_; }
  void write_part(std::string_view bytes) {
    next_->write(bytes);
    next_->end_part();
  }

 private:
  PartSink* next_ = nullptr;
};

// Factories of the steps, in order. Each text gets new steps.
using Decoder = std::vector<std::function<std::unique_ptr<DecodeStep>()>>;

// Puts ' ' before each token but the first, unless it begins with `prefix`, which is removed.
// `cleans` removes spaces that English does not have: "do n't ." → "don't."
Decoder word_piece_decoder(const std::string& prefix, bool cleans);
// What it does in each part if it `cleans`.
Decoder english_decoder();

// Turns `mark`, one character, into ' ', but with `has_first` removes those of the first part.
Decoder marks_decoder(const std::string& mark, bool has_first);

// Turns every `suffix`, which is not empty, into ' ', but removes those of the last part.
Decoder suffix_decoder(const std::string& suffix);

// Decodes the bytes of all tokens into one part. A token that is not in the visible form is kept as
// it is.
Decoder byte_level_decoder();

// Decodes tokens like <0x0A> as bytes. A run of them becomes one part if it is valid UTF-8,
// otherwise one replacement character per byte. The run is decided only at the next other token.
Decoder byte_fallback_decoder();

// Replaces every occurrence of `pattern`, which is not empty, in each part by `content`.
Decoder replacing_decoder(const std::string& pattern, const std::string& content);

// Joins all parts into one.
Decoder fusing_decoder();

// Removes up to `begin` occurrences of `character`, which is not empty, at the beginning of each
// part and up to `end` at its end.
struct StripDecoder {
  std::string character;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
Decoder stripping_decoder(const StripDecoder& strip);

// Puts ' ' between all parts: the default without a decoder.
Decoder spacing_decoder();

// Chains decoders.
Decoder decoders_of(const std::vector<Decoder>& decoders);

// The decoding of one text.
class Decoding {
 public:
  explicit Decoding(const Decoder& decoder);

  void add(std::string_view token);
  void finish() { first().finish(); }
  // Returns the text that is final and was not taken yet.
  std::string take();

 private:
  class Text : public PartSink {
   public:
    void write(std::string_view bytes) override { bytes_ += bytes; }
    void end_part() override {}
    void finish() override {}
    std::string take();

   private:
    std::string bytes_;
  };
  PartSink& first() { return steps_.empty() ? static_cast<PartSink&>(*text_) : *steps_.front(); }

  std::unique_ptr<Text> text_;  // keeps its address when this object is moved
  std::vector<std::unique_ptr<DecodeStep>> steps_;
};

}}}  // namespace heed::v0::text
