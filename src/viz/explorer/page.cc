#include "viz/explorer/page.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/error.h"
#include "heed/viz/colormap.h"
#include "heed/viz/explorer.h"
#include "heed/viz/terminal.h"
#include "io/json.h"

namespace heed { inline namespace v0 { namespace explorer {

std::string base64(std::span<const std::byte> bytes) {
  constexpr const char* kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group =
          group << 8U | (i + k < bytes.size() ? std::to_integer<std::uint32_t>(bytes[i + k]) : 0);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      const bool is_padding = i + k > bytes.size();
      text += is_padding ? '=' : kDigits[group >> (18 - 6 * k) & 63U];
    }
  }
  return text;
}

std::string base64_of_hex(std::string_view digits) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    unsigned value = 0;
    std::from_chars(digits.data() + i, digits.data() + i + 2, value, 16);
    bytes.push_back(static_cast<std::byte>(value));
  }
  return base64(bytes);
}

static_assert(std::endian::native == std::endian::little, "the page reads little-endian numbers");

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

namespace heed { inline namespace v0 {

namespace {

// The 256 colours of a map as base64 of 768 bytes.
std::string colors_of(ColorMap map) {
  constexpr int kColors = 256;
  std::array<std::uint8_t, 3 * kColors> channels{};
  for (std::size_t i = 0; i < kColors; ++i) {
    const Rgb color = colormap(map, static_cast<float>(i) / (kColors - 1));
    channels[3 * i] = color.red;
    channels[3 * i + 1] = color.green;
    channels[3 * i + 2] = color.blue;
  }
  return explorer::base64(std::as_bytes(std::span(channels)));
}

std::string data_json(const ExplorerData& data) {
  if (data.sentences.empty()) {
    throw InvalidArgument("explorer_page: sentences is empty, expected at least one");
  }
  std::string sentences;
  for (const ExplorerSentence& sentence : data.sentences) {
    sentences += (sentences.empty() ? "" : ",\n") + explorer_json(sentence);
  }
  return std::string("{\"hasServer\":") + (data.has_server ? "true" : "false") +
         ",\"maps\":" + explorer::color_maps_json() + ",\n\"sentences\":[" + sentences + "]}";
}

// The Content-Security-Policy: nothing is loaded. Pictures come from the page itself, which makes
// them for export.
std::string policy(bool has_server) {
  return "default-src 'none'; script-src 'sha256-" +
         explorer::base64_of_hex(explorer::script_sha256()) + "'; style-src 'sha256-" +
         explorer::base64_of_hex(explorer::style_sha256()) +
         "'; img-src data: blob:; connect-src " + (has_server ? "'self'" : "'none'") +
         "; base-uri 'none'; form-action 'none'";
}

}  // namespace

std::string explorer::color_maps_json() {
  constexpr std::array<std::pair<std::string_view, ColorMap>, 5> kMaps{
      {{"viridis", ColorMap::kViridis},
       {"Blues", ColorMap::kBlues},
       {"YlOrRd", ColorMap::kYlOrRd},
       {"RdBu", ColorMap::kRdBu},
       {"Greys", ColorMap::kGreys}}};
  std::string json;
  for (const auto& [name, map] : kMaps) {
    json += (json.empty() ? "{\"" : ",\"") + std::string(name) + "\":\"" + colors_of(map) + '"';
  }
  return json + '}';
}

std::string explorer::assembled_page(const std::string& data,
                                     const std::vector<std::string>& layers, bool has_server) {
  const std::array<std::pair<std::string_view, std::string>, 3> parts{
      {{"@POLICY@", policy(has_server)},
       {"@STYLE@", std::string(style_source())},
       {"@DATA@", data}}};
  std::size_t size = page_source().size() + style_source().size() + script_source().size();
  for (const auto& [name, text] : parts) size += text.size();
  for (const std::string& layer : layers) size += layer.size() + 80;
  std::string_view rest = page_source();
  std::string page;
  page.reserve(size);
  // Replaces placeholders in the order of the page, so that inserted text is never searched.
  const auto copy_until = [&](std::string_view name) {
    const std::size_t at = rest.find(name);
    page.append(rest.substr(0, at));
    rest.remove_prefix(at + name.size());
  };
  for (const auto& [name, text] : parts) {
    copy_until(name);
    page.append(text);
  }
  copy_until("@LAYERS@");
  for (std::size_t i = 0; i < layers.size(); ++i) {
    page.append("\n<script type=\"application/json\" id=\"layer-" + std::to_string(i) + "\">");
    page.append(layers[i]).append("</script>");
  }
  copy_until("@SCRIPT@");
  return page.append(script_source()).append(rest);
}

std::string explorer_page(const ExplorerData& data) {
  return explorer::assembled_page(data_json(data), {}, data.has_server);
}

}}  // namespace heed::v0
