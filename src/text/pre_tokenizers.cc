#include "text/pre_tokenizers.h"

#include <utility>

#include "text/code_points.h"
#include "text/split_patterns.h"

namespace heed { inline namespace v0 { namespace text {
namespace {

// Receives the matches of a piece and the text between them, from left to right, and cuts.
class Cutter {
 public:
  Cutter(std::vector<Span>& pieces, SplitBehavior behavior)
      : pieces_(pieces), behavior_(behavior) {}

  void begin_piece() {
    first_ = pieces_.size();
    was_match_ = false;
  }

  void add(Span span, bool is_match) {
    if (span.begin == span.end) return;
    const bool has_previous = pieces_.size() > first_;
    switch (behavior_) {
      case SplitBehavior::kRemoved:
        if (!is_match) pieces_.push_back(span);
        break;
      case SplitBehavior::kIsolated:
        pieces_.push_back(span);
        break;
      case SplitBehavior::kMergedWithPrevious:
        join(span, has_previous && is_match && !was_match_);
        break;
      case SplitBehavior::kMergedWithNext:
        join(span, has_previous && !is_match && was_match_);
        break;
      case SplitBehavior::kContiguous:
        join(span, has_previous && is_match == was_match_);
        break;
    }
    was_match_ = is_match;
  }

 private:
  void join(Span span, bool joins) {
    if (joins) {
      pieces_.back().end = span.end;
    } else {
      pieces_.push_back(span);
    }
  }

  std::vector<Span>& pieces_;
  SplitBehavior behavior_;
  std::size_t first_ = 0;
  bool was_match_ = false;
};

// For every piece calls `cut(cutter, piece)`, which passes the whole piece to the cutter.
template <class Cut>
void cut_pieces(PreTokenized& text, SplitBehavior behavior, const Cut& cut) {
  std::vector<Span> pieces;
  pieces.reserve(text.pieces.size());
  Cutter cutter(pieces, behavior);
  for (const Span piece : text.pieces) {
    cutter.begin_piece();
    cut(cutter, piece);
  }
  text.pieces = std::move(pieces);
}

}  // namespace

void split_characters(PreTokenized& text, bool (*is_match)(char32_t) noexcept,
                      SplitBehavior behavior) {
  const std::string_view bytes = text.text.bytes();
  cut_pieces(text, behavior, [&](Cutter& cutter, Span piece) {
    std::size_t done = piece.begin;
    for (std::size_t at = piece.begin; at < piece.end;) {
      const auto [value, size] = character_at(bytes, at);
      if (is_match(value)) {
        cutter.add({done, at}, false);
        cutter.add({at, at + size}, true);
        done = at + size;
      }
      at += size;
    }
    cutter.add({done, piece.end}, false);
  });
}

void split_literal(PreTokenized& text, const LiteralSplit& split) {
  const std::string& pattern = split.literal;
  cut_pieces(text, split.behavior, [&](Cutter& cutter, Span piece) {
    const std::string_view bytes = text.text.bytes().substr(0, piece.end);
    std::size_t done = piece.begin;
    std::size_t found = bytes.find(pattern, done);
    for (; found != std::string_view::npos; found = bytes.find(pattern, done)) {
      cutter.add({done, found}, split.inverts);
      done = found + pattern.size();
      cutter.add({found, done}, !split.inverts);
    }
    cutter.add({done, piece.end}, split.inverts);
  });
}

void split_pattern(PreTokenized& text, const PatternSplit& split) {
  cut_pieces(text, split.behavior, [&](Cutter& cutter, Span piece) {
    std::size_t done = piece.begin;
    split.pattern->find(text.text.bytes(), piece, [&](Span match) {
      cutter.add({done, match.begin}, split.inverts);
      cutter.add(match, !split.inverts);
      done = match.end;
    });
    cutter.add({done, piece.end}, split.inverts);
  });
}

void split_bert(PreTokenized& text) {
  split_characters(text, is_space, SplitBehavior::kRemoved);
  split_characters(text, is_punctuation, SplitBehavior::kIsolated);
}

void split_words(PreTokenized& text) {
  const std::string_view bytes = text.text.bytes();
  std::vector<Span> pieces;
  for (const Span piece : text.pieces) {
    enum class Kind { kNone, kSpace, kWord, kOther } last = Kind::kNone;
    for (std::size_t at = piece.begin; at < piece.end;) {
      const auto [value, size] = character_at(bytes, at);
      const Kind kind = is_space(value)       ? Kind::kSpace
                        : is_word_part(value) ? Kind::kWord
                                              : Kind::kOther;
      if (kind != Kind::kSpace) {
        if (kind == last) {
          pieces.back().end = at + size;
        } else {
          pieces.push_back({at, at + size});
        }
      }
      last = kind;
      at += size;
    }
  }
  text.pieces = std::move(pieces);
}

namespace {

// Rewrites the pieces of a text one after another. `write(writer, piece)` returns the size of the
// new piece.
template <class Write>
void rewrite_pieces(PreTokenized& text, const Write& write) {
  AlignedWriter writer(text.text);
  std::size_t written = 0;
  for (Span& piece : text.pieces) {
    const std::size_t begin = written;
    written += write(writer, piece);
    piece = {begin, written};
  }
  text.text = writer.take();
}

// Writes a mark that has no bytes in the original before a piece.
void put_before(AlignedWriter& writer, const AlignedText& text, Span piece, std::string_view mark) {
  const std::int64_t origin = text.origin(piece.begin).begin;
  writer.put(mark, {origin, origin});
}

}  // namespace

void mark_spaces(PreTokenized& text, const SpaceMarking& options) {
  using Prefix = SpaceMarking::Prefix;
  rewrite_pieces(text, [&](AlignedWriter& writer, Span piece) {
    const std::string_view bytes = text.text.bytes().substr(piece.begin, piece.end - piece.begin);
    const bool may_have_prefix =
        options.prefix == Prefix::kAlways ||
        (options.prefix == Prefix::kFirst && text.text.origin(piece.begin).begin == 0);
    std::size_t size = 0;
    if (may_have_prefix && bytes.front() != ' ' && !bytes.starts_with(options.mark)) {
      put_before(writer, text.text, piece, options.mark);
      size += options.mark.size();
    }
    for (std::size_t at = piece.begin; at < piece.end; ++at) {
      const bool is_space = text.text.bytes()[at] == ' ';
      if (is_space) {
        writer.put(options.mark, text.text.origin(at));
      } else {
        writer.copy(at, at + 1);
      }
      size += is_space ? options.mark.size() : 1;
    }
    return size;
  });
  if (options.splits) {
    split_literal(text, {options.mark, SplitBehavior::kMergedWithNext, false});
  }
}

void split_byte_level(PreTokenized& text, const ByteLevelSplit& options) {
  static const PatternSplit kSplit{std::make_shared<const Pattern>(split_patterns::kGpt2)};
  if (options.adds_space) {
    rewrite_pieces(text, [&](AlignedWriter& writer, Span piece) {
      const bool has_space = text.text.bytes()[piece.begin] == ' ';
      if (!has_space) put_before(writer, text.text, piece, " ");
      writer.copy(piece.begin, piece.end);
      return piece.end - piece.begin + (has_space ? 0 : 1);
    });
  }
  if (options.splits) split_pattern(text, kSplit);
  rewrite_pieces(text, [&](AlignedWriter& writer, Span piece) {
    std::size_t size = 0;
    for (std::size_t at = piece.begin; at < piece.end; ++at) {
      const auto visible = visible_byte(static_cast<unsigned char>(text.text.bytes()[at]));
      writer.put(visible, text.text.origin(at));
      size += visible.size();
    }
    return size;
  });
}

}}}  // namespace heed::v0::text
