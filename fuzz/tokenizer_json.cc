// Tokenizers from arbitrary bytes, which are read as each kind of tokenizer file: refused with a
// message, or they encode texts, including these bytes, into valid ids and ranges, and decode them.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/error.h"
#include "heed/text/tokenizer.h"
#include "io/unicode.h"
#include "text/formats.h"

namespace {

namespace text = heed::text;

void check(bool holds) {
  if (!holds) std::abort();
}

void check_encoding(const text::Tokenizer& tokenizer, const text::Encoding& encoding,
                    std::size_t size) {
  check(encoding.ids.size() == encoding.ranges.size());
  check(encoding.ids.size() == encoding.type_ids.size());
  for (const auto& [begin, end] : encoding.ranges) {
    check(0 <= begin && begin <= end && end <= static_cast<std::int64_t>(size));
  }
  tokenizer.decode(encoding.ids, {false});
  const auto stream = tokenizer.stream();
  std::string text;
  for (const std::int64_t id : encoding.ids) text += stream->add(id);
  check(text + stream->finish() == tokenizer.decode(encoding.ids));
  for (const std::int64_t id : encoding.ids) {
    check(heed::unicode::find_invalid(tokenizer.label(id)) == std::nullopt);
    check(tokenizer.id(tokenizer.token(id)) == id);
  }
}

void use(const text::Tokenizer& tokenizer, std::string_view bytes) {
  constexpr std::string_view kSample = "The  caf\u00E9's 12345 \u732B\n<|end|> [MASK] e\u0301!";
  const std::string_view own =
      bytes.substr(0, heed::unicode::find_invalid(bytes).value_or(bytes.size()));
  for (const std::string_view sample : {kSample, own}) {
    for (const bool is_set : {false, true}) {
      check_encoding(tokenizer, tokenizer.encode(sample, {is_set, !is_set}), sample.size());
    }
  }
  try {
    check_encoding(tokenizer, tokenizer.encode_pair(kSample, kSample), kSample.size());
  } catch (const heed::InvalidArgument&) {  // it has no form for pairs
  }
  try {
    const std::vector<text::ChatMessage> messages{{"user", std::string(own)}};
    const std::string chat = tokenizer.apply_chat_template(messages);
    check_encoding(tokenizer, tokenizer.encode_chat(messages), chat.size());
  } catch (const heed::InvalidArgument&) {  // it has no template, or one that heed does not know
  }
}

template <class Read>
void try_to(const Read& read) {
  try {
    read();
  } catch (const heed::FormatError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  text::TokenizerConfig config;
  try_to([&] { config = text::parse_tokenizer_config(bytes, "config"); });
  try_to([&] { use(*text::tokenizer_from_json(bytes, "json", config), bytes); });
  try_to([&] { use(*text::tokenizer_from_vocabulary(bytes, "vocabulary", config), bytes); });
  return 0;
}
