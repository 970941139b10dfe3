#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <utility>

#include "text/code_points.h"
#include "text/normalizers.h"

namespace heed { inline namespace v0 { namespace text {
namespace {

struct Placed {
  char32_t value;
  TextRange origin;
};

int combining_class(char32_t value) noexcept {
  return utf8proc_get_property(static_cast<utf8proc_int32_t>(value))->combining_class;
}

// The longest decomposition of one character has 18 of them.
void append_decomposed(std::vector<Placed>& to, const Placed& from, bool compatible) {
  std::array<utf8proc_int32_t, 32> parts{};
  const int options = UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0);
  int last_class = 0;
  const auto count =
      utf8proc_decompose_char(static_cast<utf8proc_int32_t>(from.value), parts.data(),
                              static_cast<utf8proc_ssize_t>(parts.size()),
                              static_cast<utf8proc_option_t>(options), &last_class);
  for (utf8proc_ssize_t i = 0; i < count; ++i) {
    to.push_back({static_cast<char32_t>(parts[static_cast<std::size_t>(i)]), from.origin});
  }
}

// The canonical order: adjacent marks are sorted by their combining classes.
void order_marks(std::vector<Placed>& characters) {
  for (auto at = characters.begin(); at != characters.end();) {
    if (combining_class(at->value) == 0) {
      ++at;
      continue;
    }
    const auto end = std::find_if(at, characters.end(), [](const Placed& character) {
      return combining_class(character.value) == 0;
    });
    std::stable_sort(at, end, [](const Placed& a, const Placed& b) {
      return combining_class(a.value) < combining_class(b.value);
    });
    at = end;
  }
}

// The character that two compose to, 0 if none. utf8proc composes only whole texts, not pairs.
char32_t composed(char32_t first, char32_t second) {
  constexpr char32_t kFirstMark = 0x300;  // no character below it is the second of a pair
  if (second < kFirstMark) return 0;
  std::array<utf8proc_int32_t, 2> pair{static_cast<utf8proc_int32_t>(first),
                                       static_cast<utf8proc_int32_t>(second)};
  const int options = UTF8PROC_COMPOSE | UTF8PROC_STABLE;
  const auto count =
      utf8proc_normalize_utf32(pair.data(), 2, static_cast<utf8proc_option_t>(options));
  return count == 1 ? static_cast<char32_t>(pair[0]) : 0;
}

// Composes characters in canonical order, in place.
void compose(std::vector<Placed>& characters) {
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::size_t starter = kNone;
  std::size_t kept = 0;
  int last_class = -1;  // combining class of the last character kept after the starter; -1 if none
  for (const Placed& next : std::vector<Placed>(characters)) {
    const int next_class = combining_class(next.value);
    const bool is_blocked = last_class != -1 && (last_class == 0 || last_class >= next_class);
    if (starter != kNone && !is_blocked) {
      if (const char32_t made = composed(characters[starter].value, next.value)) {
        TextRange& origin = characters[starter].origin;
        origin = {std::min(origin.begin, next.origin.begin), std::max(origin.end, next.origin.end)};
        characters[starter].value = made;
        continue;
      }
    }
    if (next_class == 0) {
      starter = kept;
      last_class = -1;
    } else {
      last_class = next_class;
    }
    characters[kept++] = next;
  }
  characters.resize(kept);
}

bool is_ascii(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

}  // namespace

AlignedText normalize_unicode(AlignedText text, UnicodeForm form) {
  if (is_ascii(text.bytes())) return text;
  std::vector<Placed> characters;
  characters.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const auto [value, size] = character_at(text.bytes(), at);
    append_decomposed(characters, {value, text.origin(at, at + size)}, form.compatible);
    at += size;
  }
  order_marks(characters);
  if (form.composes) compose(characters);
  AlignedWriter writer(text);
  for (const Placed& character : characters) writer.put(character.value, character.origin);
  return writer.take();
}

}}}  // namespace heed::v0::text
