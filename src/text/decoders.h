// Decoders: how tokens become a text again. Tokens come as parts, one after another. Each step
// hands on, to the step behind it, parts that may be others; what leaves the last one is joined. A
// step hands on what no later token can change as soon as it knows it, so that a text can be shown
// while it is written.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace heed { inline namespace v0 { namespace text {

// What takes parts.
class PartSink {
 public:
  PartSink() = default;
  virtual ~PartSink() = default;
  PartSink(const PartSink&) = delete;
  PartSink& operator=(const PartSink&) = delete;

  // More bytes of a part, which begins where the one before it ended.
  virtual void write(std::string_view bytes) = 0;
  virtual void end_part() = 0;
  // No parts follow.
  virtual void finish() = 0;
};

// Hands everything on, unless it says otherwise.
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

// Steps in their order, each made anew for every text.
using Decoder = std::vector<std::function<std::unique_ptr<DecodeStep>()>>;

// ' ' before each token but the first, unless it begins with `prefix`, which goes. `cleans` takes
// spaces away that English does not have: "do n't ." → "don't."
Decoder word_piece_decoder(const std::string& prefix, bool cleans);

// The bytes of all tokens as one part. A token that is not written as such is taken as it is.
Decoder byte_level_decoder();

// Tokens like <0x0A> as bytes: those that follow each other are one part where they are valid
// UTF-8, and else a replacement character each. Which of them, only the next other token tells.
Decoder byte_fallback_decoder();

// Every occurrence of `pattern`, not empty, in each part.
Decoder replacing_decoder(const std::string& pattern, const std::string& content);

// All parts as one.
Decoder fusing_decoder();

// Without up to so many times `character`, not empty, at the beginning and at the end of each
// part.
struct StripDecoder {
  std::string character;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
Decoder stripping_decoder(const StripDecoder& strip);

// ' ' between all parts: what is done without a decoder.
Decoder spacing_decoder();

// One behind the other.
Decoder decoders_of(const std::vector<Decoder>& decoders);

// A text that is decoded.
class Decoding {
 public:
  explicit Decoding(const Decoder& decoder);

  void add(std::string_view token);
  void finish() { first().finish(); }
  // What is known of the text and was not taken yet.
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

  std::unique_ptr<Text> text_;  // stays where it is when this is moved
  std::vector<std::unique_ptr<DecodeStep>> steps_;
};

}}}  // namespace heed::v0::text
