#include "text/normalizers.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "text/code_points.h"

namespace heed { inline namespace v0 { namespace text {

AlignedText AlignedText::slice(std::size_t begin, std::size_t end) const {
  AlignedText part(bytes().substr(begin, end - begin), begin_ + begin);
  if (!origins_.empty()) {
    part.origins_.assign(std::next(origins_.begin(), static_cast<std::ptrdiff_t>(begin)),
                         std::next(origins_.begin(), static_cast<std::ptrdiff_t>(end)));
  }
  return part;
}

AlignedWriter::AlignedWriter(const AlignedText& from) : from_(from) {
  to_.bytes_.reserve(from.size());
  to_.origins_.reserve(from.size());
}

void AlignedWriter::copy(std::size_t begin, std::size_t end) {
  to_.bytes_.append(from_.bytes_, begin, end - begin);
  for (std::size_t i = begin; i < end; ++i) to_.origins_.push_back(from_.origin(i));
}

void AlignedWriter::put(std::string_view bytes, TextRange origin) {
  to_.bytes_.append(bytes);
  to_.origins_.insert(to_.origins_.end(), bytes.size(), origin);
}

void AlignedWriter::put(char32_t value, TextRange origin) {
  const std::size_t before = to_.bytes_.size();
  append_character(to_.bytes_, value);
  to_.origins_.insert(to_.origins_.end(), to_.bytes_.size() - before, origin);
}

namespace {

// Calls `each` with every character and the position of its first byte.
template <class Each>
void for_each_character(std::string_view bytes, const Each& each) {
  for (std::size_t at = 0; at < bytes.size();) {
    const Character character = character_at(bytes, at);
    each(character, at);
    at += character.size;
  }
}

// Keeps the characters for which is_kept is true.
template <class IsKept>
AlignedText keep_if(const AlignedText& text, const IsKept& is_kept) {
  AlignedWriter writer(text);
  for_each_character(text.bytes(), [&](Character character, std::size_t at) {
    if (is_kept(character.value)) writer.copy(at, at + character.size);
  });
  return writer.take();
}

struct Block {
  char32_t first;
  char32_t last;
};

template <std::size_t kCount>
bool is_in(const std::array<Block, kCount>& blocks, char32_t value) noexcept {
  return std::any_of(blocks.begin(), blocks.end(), [value](const Block& block) {
    return value >= block.first && value <= block.last;
  });
}

// The blocks that BERT calls Chinese: the ideographs of Unicode 8.
bool is_han(char32_t value) noexcept {
  constexpr std::array<Block, 8> kBlocks{{{0x4E00, 0x9FFF},
                                          {0x3400, 0x4DBF},
                                          {0x20000, 0x2A6DF},
                                          {0x2A700, 0x2B73F},
                                          {0x2B740, 0x2B81F},
                                          {0x2B920, 0x2CEAF},
                                          {0xF900, 0xFAFF},
                                          {0x2F800, 0x2FA1F}}};
  return is_in(kBlocks, value);
}

AlignedText clean(const AlignedText& text) {
  constexpr char32_t kReplacement = 0xFFFD;
  AlignedWriter writer(text);
  for_each_character(text.bytes(), [&](Character character, std::size_t at) {
    const char32_t value = character.value;
    const bool is_blank = value == '\t' || value == '\n' || value == '\r';
    if (value == kReplacement || (is_control(value) && !is_blank)) return;
    if (is_space(value)) {
      writer.put(" ", text.origin(at, at + character.size));
    } else {
      writer.copy(at, at + character.size);
    }
  });
  return writer.take();
}

AlignedText space_han(const AlignedText& text) {
  AlignedWriter writer(text);
  for_each_character(text.bytes(), [&](Character character, std::size_t at) {
    const std::size_t end = at + character.size;
    if (!is_han(character.value)) {
      writer.copy(at, end);
      return;
    }
    const TextRange origin = text.origin(at, end);
    writer.put(" ", {origin.begin, origin.begin});
    writer.copy(at, end);
    writer.put(" ", {origin.end, origin.end});
  });
  return writer.take();
}

}  // namespace

AlignedText lower_case(AlignedText text) {
  AlignedWriter writer(text);
  std::string lower;
  for_each_character(text.bytes(), [&](Character character, std::size_t at) {
    const std::size_t end = at + character.size;
    lower.clear();
    append_lower(lower, character.value);
    if (lower == text.bytes().substr(at, character.size)) {
      writer.copy(at, end);
    } else {
      writer.put(lower, text.origin(at, end));
    }
  });
  return writer.take();
}

AlignedText strip_marks(const AlignedText& text) {
  return keep_if(text, [](char32_t value) { return value < 0x80 || !is_mark(value); });
}

AlignedText replace_all(const AlignedText& text, const std::string& pattern,
                        const std::string& content) {
  AlignedWriter writer(text);
  std::size_t done = 0;
  std::size_t found = text.bytes().find(pattern);
  for (; found != std::string_view::npos; found = text.bytes().find(pattern, done)) {
    writer.copy(done, found);
    done = found + pattern.size();
    writer.put(content, text.origin(found, done));
  }
  writer.copy(done, text.size());
  return writer.take();
}

AlignedText replace_pattern(const AlignedText& text, const Pattern& pattern,
                            const std::string& content) {
  AlignedWriter writer(text);
  std::size_t done = 0;
  pattern.find(text.bytes(), {0, text.size()}, [&](Span match) {
    writer.copy(done, match.begin);
    writer.put(content, text.origin(match.begin, match.end));
    done = match.end;
  });
  writer.copy(done, text.size());
  return writer.take();
}

AlignedText strip_space(const AlignedText& text, bool at_begin, bool at_end) {
  std::size_t begin = 0;
  std::size_t end = text.size();
  while (at_begin && begin < end) {
    const auto [value, size] = character_at(text.bytes(), begin);
    if (!is_space(value)) break;
    begin += size;
  }
  while (at_end && begin < end) {
    const auto [value, size] = character_before(text.bytes(), end);
    if (!is_space(value)) break;
    end -= size;
  }
  return text.slice(begin, end);
}

AlignedText normalize_nmt(const AlignedText& text) {
  constexpr std::array<Block, 6> kRemoved{
      {{0x01, 0x08}, {0x0B, 0x0B}, {0x0E, 0x1F}, {0x7F, 0x7F}, {0x8F, 0x8F}, {0x9F, 0x9F}}};
  constexpr std::array<Block, 8> kSpaces{{{0x09, 0x0A},
                                          {0x0C, 0x0D},
                                          {0x1680, 0x1680},
                                          {0x200B, 0x200F},
                                          {0x2028, 0x2029},
                                          {0x2581, 0x2581},
                                          {0xFEFF, 0xFEFF},
                                          {0xFFFD, 0xFFFD}}};
  AlignedWriter writer(text);
  for_each_character(text.bytes(), [&](Character character, std::size_t at) {
    const std::size_t end = at + character.size;
    if (is_in(kRemoved, character.value)) return;
    if (is_in(kSpaces, character.value)) {
      writer.put(" ", text.origin(at, end));
    } else {
      writer.copy(at, end);
    }
  });
  return writer.take();
}

AlignedText show_bytes(const AlignedText& text) {
  AlignedWriter writer(text);
  for (std::size_t at = 0; at < text.size(); ++at) {
    writer.put(visible_byte(static_cast<unsigned char>(text.bytes()[at])), text.origin(at));
  }
  return writer.take();
}

AlignedText prepend(AlignedText text, const std::string& prefix) {
  if (text.size() == 0) return text;
  AlignedWriter writer(text);
  const std::int64_t begin = text.origin(0).begin;
  writer.put(prefix, {begin, begin});
  writer.copy(0, text.size());
  return writer.take();
}

AlignedText normalize_bert(AlignedText text, const BertNormalization& options) {
  if (options.cleans) text = clean(text);
  if (options.spaces_han) text = space_han(text);
  if (options.strips_accents) {
    text = normalize_unicode(std::move(text), {});
    text = keep_if(text, [](char32_t value) { return !is_nonspacing(value); });
  }
  if (options.lowers) text = lower_case(std::move(text));
  return text;
}

}}}  // namespace heed::v0::text
