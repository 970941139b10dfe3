// Chat templates from arbitrary bytes: refused with a message, or the conversation's text is valid
// UTF-8, and the parts from messages are in it, in order. The first bytes up to a NUL are the
// template, the others a message.
#include "text/chat_template.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/error.h"
#include "heed/text/tokenizer.h"
#include "io/unicode.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace text = heed::text;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(bytes.find('\0'), size);
  const std::string message(bytes.substr(std::min(end + 1, size)));
  const text::ChatTemplate chat = text::read_template(bytes.substr(0, end), {"<s>", "</s>"});
  const std::vector<text::ChatMessage> messages{
      {"system", "Be kind."},
      {"user", message},
      {.role = {}, .content = {}, .json = R"({"role": "assistant", "tool_calls": [{"a": 1.5}]})"}};
  const text::ChatOptions options{.tools = R"([{"name": "<t>", "parameters": {}}])",
                                  .variables = R"({"x": [1, "two", null, true]})"};
  try {
    const text::RenderedChat result = text::render("fuzz", chat, messages, options);
    if (heed::unicode::find_invalid(result.text)) std::abort();
    std::size_t behind = 0;
    for (const auto& [begin, stop] : result.contents) {
      if (begin < behind || begin >= stop || stop > result.text.size()) std::abort();
      behind = stop + 1;
    }
  } catch (const heed::FormatError&) {
  } catch (const heed::InvalidArgument&) {
  }
  return 0;
}
