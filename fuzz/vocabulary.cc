// A vocabulary from arbitrary bytes: it is refused, or comes back unchanged and encodes any valid
// UTF-8.
#include "heed/tasks/vocabulary.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "heed/core/error.h"

namespace {

using heed::tasks::Vocabulary;

void read_other(const Vocabulary& vocabulary, std::string_view text) {
  try {
    vocabulary.decode(vocabulary.ids(text));
    vocabulary.token(vocabulary.size());
    std::abort();
  } catch (const heed::InvalidArgument&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const Vocabulary vocabulary = Vocabulary::from_json(bytes);
    if (!(Vocabulary::from_json(vocabulary.to_json()) == vocabulary)) std::abort();
    const auto ids = vocabulary.ids(bytes);
    vocabulary.tokens(ids);
    vocabulary.decode(ids);
    vocabulary.decode(ids, {.skip_special_tokens = false});
    read_other(vocabulary, bytes.substr(size / 2));
  } catch (const heed::FormatError&) {
  } catch (const heed::InvalidArgument&) {
  }
  return 0;
}
