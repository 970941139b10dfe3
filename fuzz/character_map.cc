// SentencePiece's maps of characters from arbitrary bytes: refused with a message, or they replace
// parts of texts by valid UTF-8 whose origins are in the text.
#include "text/character_map.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "io/unicode.h"
#include "text/normalizers.h"

namespace {

namespace text = heed::text;

void check_text(const text::AlignedText& made, std::size_t size) {
  if (heed::unicode::find_invalid(made.bytes())) std::abort();
  for (std::size_t i = 0; i < made.size(); ++i) {
    const auto [begin, end] = made.origin(i);
    if (begin < 0 || begin > end || end > static_cast<std::int64_t>(size)) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  text::bytes_of_base64(bytes);
  if (!text::CharacterMap::problem_of(bytes).empty()) return 0;
  const text::CharacterMap map(bytes);
  constexpr std::string_view kSample = "a ab \uFB01\u00E9e\u0301\u732B\0b";
  const std::string_view own =
      bytes.substr(0, heed::unicode::find_invalid(bytes).value_or(bytes.size()));
  for (const std::string_view sample : {kSample, own}) {
    check_text(text::replace_longest(text::AlignedText(sample, 0), map), sample.size());
    check_text(text::replace_clusters(text::AlignedText(sample, 0), map), sample.size());
  }
  return 0;
}
