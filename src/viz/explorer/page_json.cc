#include "viz/explorer/page_json.h"

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "heed/viz/terminal.h"
#include "io/json.h"
#include "viz/explorer/base64.h"

static_assert(std::endian::native == std::endian::little, "the page reads little-endian numbers");

namespace heed { inline namespace v0 { namespace explorer {

// Characters that a browser could take for markup occur only in strings, where an escape has the
// same meaning.
std::string to_json(std::string_view text) {
  std::string json;
  for (const char character :
       io::json_string(sanitize_for_terminal(text), io::JsonCharacters::kAscii)) {
    if (character == '<' || character == '>' || character == '&') {
      json += fmt::format("\\u{:04x}", static_cast<unsigned>(character));
    } else {
      json += character;
    }
  }
  return json;
}

std::string to_json(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) {
    if (!list.empty()) list += ',';
    list += to_json(text);
  }
  return fmt::format("[{}]", list);
}

std::string to_json(double number) { return nlohmann::json(number).dump(); }

std::string encoded(std::span<const std::byte> bytes) {
  return fmt::format("\"{}\"", explorer::base64(bytes));
}
std::string encoded(const Tensor<float>& array) { return encoded(std::as_bytes(array.elements())); }

std::string encoded(const Tensor<bool>& visible) {
  bool is_full = true;
  bool is_causal = true;
  std::vector<std::byte> bits(static_cast<std::size_t>((visible.num_elements() + 7) / 8));
  const std::int64_t keys = visible.empty() ? 0 : visible.extent(1);
  for (std::int64_t cell = 0; cell < visible.num_elements(); ++cell) {
    const bool sees = visible.data()[cell];
    is_full = is_full && sees;
    is_causal = is_causal && sees == (cell % keys <= cell / keys);
    if (sees) bits[static_cast<std::size_t>(cell / 8)] |= std::byte{0x80} >> (cell % 8);
  }
  if (is_full) return R"("none")";
  if (is_causal) return R"("causal")";
  return fmt::format(R"({{"bits":{}}})", encoded(bits));
}

std::string to_json(const std::map<std::string, std::string>& members) {
  std::string text;
  for (const auto& [name, value] : members) {
    text += fmt::format("{}\"{}\":{}", text.empty() ? '{' : ',', name, value);
  }
  return text + '}';
}

}}}  // namespace heed::v0::explorer
