#include "text/decoders.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "io/unicode.h"
#include "text/code_points.h"
#include "text/literal_matcher.h"

namespace heed { inline namespace v0 { namespace text {
namespace {

template <class Step, class... Arguments>
Decoder decoder_of(const Arguments&... arguments) {
  return {[arguments...] { return std::make_unique<Step>(arguments...); }};
}

// A step that needs each part as a whole.
class WholePartStep : public DecodeStep {
 public:
  void write(std::string_view bytes) final { part_ += bytes; }
  void end_part() final {
    take_part(part_);
    part_.clear();
  }

 protected:
  virtual void take_part(const std::string& part) = 0;

 private:
  std::string part_;
};

// Writes ' ' before a part that is not the first.
class SpacingStep : public DecodeStep {
 public:
  void write(std::string_view bytes) override {
    begin_part();
    next().write(bytes);
  }
  void end_part() override {
    begin_part();
    has_begun_ = false;
    is_first_ = false;
    next().end_part();
  }

 private:
  void begin_part() {
    if (!has_begun_ && !is_first_) next().write(" ");
    has_begun_ = true;
  }

  bool is_first_ = true;
  bool has_begun_ = false;  // a byte of the current part was written
};

class WordPieceStep : public DecodeStep {
 public:
  explicit WordPieceStep(std::string prefix) : prefix_(std::move(prefix)) {}

  void write(std::string_view bytes) override {
    if (is_decided_) {
      next().write(bytes);
      return;
    }
    begin_ += bytes;
    if (begin_.size() >= prefix_.size()) decide();
  }
  void end_part() override {
    if (!is_decided_) decide();
    is_decided_ = false;
    next().end_part();
  }

 private:
  // Passes on the beginning of a part, once enough of it is known.
  void decide() {
    const std::string_view begin = begin_;
    if (!is_first_ && begin.starts_with(prefix_)) {
      next().write(begin.substr(prefix_.size()));
    } else {
      if (!is_first_) next().write(" ");
      next().write(begin);
    }
    begin_.clear();
    is_first_ = false;
    is_decided_ = true;
  }

  std::string prefix_;
  std::string begin_;
  bool is_first_ = true;
  bool is_decided_ = false;
};

class FuseStep : public DecodeStep {
 public:
  void end_part() override {}
  void finish() override {
    next().end_part();
    next().finish();
  }
};

class ByteLevelStep final : public WholePartStep {
 public:
  void finish() override {
    next().end_part();
    next().finish();
  }

 protected:
  void take_part(const std::string& part) override {
    next().write(bytes_of_visible(part).value_or(part));
  }
};

// The byte that "<0x0A>" stands for.
std::optional<char> byte_of(std::string_view token) {
  constexpr std::size_t kSize = 6;
  if (token.size() != kSize || !token.starts_with("<0x") || token.back() != '>') {
    return std::nullopt;
  }
  unsigned byte = 0;
  const char* end = token.data() + kSize - 1;
  const auto [stopped, error] = std::from_chars(token.data() + 3, end, byte, 16);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return static_cast<char>(byte);
}

class ByteFallbackStep final : public WholePartStep {
 public:
  void finish() override {
    write_bytes();
    next().finish();
  }

 protected:
  void take_part(const std::string& part) override {
    if (const auto byte = byte_of(part)) {
      bytes_ += *byte;
      return;
    }
    write_bytes();
    write_part(part);
  }

 private:
  void write_bytes() {
    constexpr std::string_view kReplacement = "\uFFFD";
    if (unicode::find_invalid(bytes_)) {
      for (std::size_t i = 0; i < bytes_.size(); ++i) write_part(kReplacement);
    } else if (!bytes_.empty()) {
      write_part(bytes_);
    }
    bytes_.clear();
  }

  std::string bytes_;
};

// Finds a pattern in each part, from left to right.
class LiteralStep : public DecodeStep {
 public:
  explicit LiteralStep(std::string pattern) : matcher_(std::move(pattern)) {}

  void write(std::string_view bytes) final {
    const std::string_view pattern = matcher_.pattern();
    for (const char byte : bytes) {
      const std::size_t after = matcher_.after(state_, byte);
      if (after == pattern.size()) {
        take_match();
        state_ = 0;
        continue;
      }
      // Of the held-back bytes and this one, all but the last `after` belong to no match.
      const std::size_t count = state_ + 1 - after;
      if (count > 0) take_other(pattern.substr(0, std::min(count, state_)));
      if (count > state_) take_other({&byte, 1});
      state_ = after;
    }
    hand_on();
  }
  void end_part() final {
    if (state_ > 0) take_other(std::string_view(matcher_.pattern()).substr(0, state_));
    state_ = 0;
    take_end();
    hand_on();
    next().end_part();
  }

 protected:
  virtual void take_match() = 0;
  virtual void take_other(std::string_view bytes) = 0;
  virtual void take_end() = 0;
  const std::string& pattern() const noexcept { return matcher_.pattern(); }
  std::string known_;  // bytes of the part that can be passed on

 private:
  void hand_on() {
    if (!known_.empty()) next().write(known_);
    known_.clear();
  }

  LiteralMatcher matcher_;
  std::size_t state_ = 0;
};

class ReplacingStep final : public LiteralStep {
 public:
  ReplacingStep(std::string pattern, std::string content)
      : LiteralStep(std::move(pattern)), content_(std::move(content)) {}

 protected:
  void take_match() override { known_ += content_; }
  void take_other(std::string_view bytes) override { known_ += bytes; }
  void take_end() override {}

 private:
  std::string content_;
};

class MarksStep final : public LiteralStep {
 public:
  MarksStep(std::string mark, bool has_first)
      : LiteralStep(std::move(mark)), is_dropped_(has_first) {}

 protected:
  void take_match() override {
    if (!is_dropped_) known_ += ' ';
  }
  void take_other(std::string_view bytes) override { known_ += bytes; }
  void take_end() override { is_dropped_ = false; }

 private:
  bool is_dropped_;
};

// Holds back the last part.
class SuffixStep final : public WholePartStep {
 public:
  explicit SuffixStep(std::string suffix) : suffix_(std::move(suffix)) {}

  void finish() override {
    if (last_) write_part(replaced(*last_, ""));
    last_.reset();
    next().finish();
  }

 protected:
  void take_part(const std::string& part) override {
    if (last_) write_part(replaced(*last_, " "));
    last_ = part;
  }

 private:
  std::string replaced(std::string_view part, std::string_view content) const {
    std::string text;
    std::size_t done = 0;
    for (std::size_t found = part.find(suffix_); found != part.npos;
         found = part.find(suffix_, done)) {
      text.append(part.substr(done, found - done)).append(content);
      done = found + suffix_.size();
    }
    return text.append(part.substr(done));
  }

  std::string suffix_;
  std::optional<std::string> last_;
};

class StrippingStep final : public LiteralStep {
 public:
  explicit StrippingStep(const StripDecoder& strip)
      : LiteralStep(strip.character), strip_(strip), left_(strip.begin) {}

 protected:
  void take_match() override {
    if (left_ > 0) {
      --left_;
    } else if (held_ < strip_.end) {
      ++held_;
    } else {
      known_ += pattern();
    }
  }
  void take_other(std::string_view bytes) override {
    left_ = 0;
    for (; held_ > 0; --held_) known_ += pattern();
    known_ += bytes;
  }
  void take_end() override {
    held_ = 0;
    left_ = strip_.begin;
  }

 private:
  StripDecoder strip_;
  std::int64_t left_;      // matches still to be removed at the beginning of the part
  std::int64_t held_ = 0;  // trailing matches, held back because the part may end here
};

// The order and spelling are those of the library that models are decoded with.
constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kEnglish{
    {{" .", "."},
     {" ?", "?"},
     {" !", "!"},
     {" ,", ","},
     {" ' ", "'"},
     {" n't", "n't"},
     {" 'm", "'m"},
     {" do not", " don't"},
     {" 's", "'s"},
     {" 've", "'ve"},
     {" 're", "'re"}}};

}  // namespace

Decoder word_piece_decoder(const std::string& prefix, bool cleans) {
  std::vector<Decoder> decoders{decoder_of<WordPieceStep>(prefix)};
  if (cleans) decoders.push_back(english_decoder());
  return decoders_of(decoders);
}

Decoder english_decoder() {
  std::vector<Decoder> decoders;
  for (const auto& [pattern, content] : kEnglish) {
    decoders.push_back(replacing_decoder(std::string(pattern), std::string(content)));
  }
  return decoders_of(decoders);
}

Decoder marks_decoder(const std::string& mark, bool has_first) {
  return decoder_of<MarksStep>(mark, has_first);
}

Decoder suffix_decoder(const std::string& suffix) { return decoder_of<SuffixStep>(suffix); }

Decoder byte_level_decoder() { return decoder_of<ByteLevelStep>(); }

Decoder byte_fallback_decoder() { return decoder_of<ByteFallbackStep>(); }

Decoder replacing_decoder(const std::string& pattern, const std::string& content) {
  return decoder_of<ReplacingStep>(pattern, content);
}

Decoder fusing_decoder() { return decoder_of<FuseStep>(); }

Decoder stripping_decoder(const StripDecoder& strip) { return decoder_of<StrippingStep>(strip); }

Decoder spacing_decoder() { return decoder_of<SpacingStep>(); }

Decoder decoders_of(const std::vector<Decoder>& decoders) {
  Decoder all;
  for (const Decoder& decoder : decoders) all.insert(all.end(), decoder.begin(), decoder.end());
  return all;
}

Decoding::Decoding(const Decoder& decoder) : text_(std::make_unique<Text>()) {
  for (const auto& make : decoder) steps_.push_back(make());
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    steps_[i]->hand_on_to(i + 1 < steps_.size() ? static_cast<PartSink&>(*steps_[i + 1]) : *text_);
  }
}

void Decoding::add(std::string_view token) {
  first().write(token);
  first().end_part();
}

std::string Decoding::take() { return text_->take(); }

std::string Decoding::Text::take() { return std::exchange(bytes_, {}); }

}}}  // namespace heed::v0::text
