// A vocabulary from arbitrary bytes: refused, or it comes back unchanged and reads any text.
#include "heed/tasks/vocabulary.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "heed/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using heed::tasks::Vocabulary;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const Vocabulary vocabulary = Vocabulary::from_json(bytes);
    if (!(Vocabulary::from_json(vocabulary.to_json()) == vocabulary)) std::abort();
    vocabulary.tokens(vocabulary.encode(bytes));
  } catch (const heed::FormatError&) {
  } catch (const heed::InvalidArgument&) {
  }
  return 0;
}
