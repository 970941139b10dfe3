// The tokenizer on arbitrary bytes: half of them are the vocabulary's text, half the text to
// encode. Each is refused as invalid UTF-8 or comes back unchanged. All bytes are also made
// legible.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/error.h"
#include "heed/text/word_tokenizer.h"
#include "io/unicode.h"

namespace {

// Checks that the legible text is valid, does not change when made legible again, and is cut at the
// terminal's width.
void show(std::string_view bytes) {
  const std::string text = heed::unicode::legible(bytes);
  if (heed::unicode::find_invalid(text) || heed::unicode::legible(text) != text) std::abort();
  const int limit = static_cast<int>(bytes.size() % 16);
  if (heed::unicode::columns(heed::unicode::prefix_of_columns(text, limit)) > limit) std::abort();
}

// Checks that ids and words outside the vocabulary are refused.
void ask_for(const heed::text::WordTokenizer& tokenizer, std::int64_t id, std::string_view word) {
  try {
    tokenizer.label(id);
    heed::to_ids({word}, std::vector<std::string_view>{"the", "cat"});
  } catch (const heed::InvalidArgument&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string_view text = bytes.substr(size / 2);
  show(bytes);
  try {
    const heed::text::WordTokenizer tokenizer(bytes.substr(0, size / 2));
    const auto ids = tokenizer.ids(text);
    if (tokenizer.decode(ids) != text) std::abort();
    tokenizer.labels(ids);
    for (const std::int64_t id :
         {std::int64_t{-1}, tokenizer.vocab_size() - 1, tokenizer.vocab_size()}) {
      ask_for(tokenizer, id, text.substr(0, 3));
    }
  } catch (const heed::InvalidArgument&) {
  }
  return 0;
}
