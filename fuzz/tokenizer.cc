// The tokenizer on arbitrary bytes: half of them the vocabulary's text, half the text to encode.
// Either is refused as invalid UTF-8 or comes back unchanged.
#include "heed/io/tokenizer.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "heed/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string_view text = bytes.substr(size / 2);
  try {
    const heed::Tokenizer tokenizer(bytes.substr(0, size / 2));
    const auto ids = tokenizer.encode(text);
    if (tokenizer.decode(ids) != text) std::abort();
    tokenizer.labels(ids);
  } catch (const heed::InvalidArgument&) {
  }
  return 0;
}
