#include "viz/explorer/page.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "heed/core/error.h"
#include "heed/viz/colormap.h"
#include "heed/viz/explorer.h"
#include "viz/explorer/base64.h"
#include "viz/explorer/sources.h"

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
