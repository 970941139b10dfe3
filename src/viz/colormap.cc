#include "heed/viz/colormap.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <span>

namespace heed { inline namespace v0 {
namespace {

// Colours at equal distances, as 0xRRGGBB; between them sRGB values are interpolated linearly.

// Viridis by Stéfan van der Walt and Nathaniel Smith (CC0), thinned such that each channel stays
// within 2/255.
constexpr std::array<std::uint32_t, 25> kViridisAnchors{
    0x440154, 0x471163, 0x481f71, 0x472d7b, 0x443a83, 0x404688, 0x3b528b, 0x355d8d, 0x31688e,
    0x2c728e, 0x287c8e, 0x24868e, 0x21908c, 0x1f9a8a, 0x20a486, 0x28ae80, 0x35b779, 0x47c06f,
    0x5dc963, 0x75d054, 0x8fd744, 0xabdc32, 0xc7e020, 0xe3e418, 0xfde725};

// This product includes color specifications and designs developed by Cynthia Brewer
// (https://colorbrewer.org/): the four maps that follow.
constexpr std::array<std::uint32_t, 9> kBluesAnchors{
    0xf7fbff, 0xdeebf7, 0xc6dbef, 0x9ecae1, 0x6baed6, 0x4292c6, 0x2171b5, 0x08519c, 0x08306b};
constexpr std::array<std::uint32_t, 9> kYlOrRdAnchors{
    0xffffcc, 0xffeda0, 0xfed976, 0xfeb24c, 0xfd8d3c, 0xfc4e2a, 0xe31a1c, 0xbd0026, 0x800026};
constexpr std::array<std::uint32_t, 11> kRdBuAnchors{0x67001f, 0xb2182b, 0xd6604d, 0xf4a582,
                                                     0xfddbc7, 0xf7f7f7, 0xd1e5f0, 0x92c5de,
                                                     0x4393c3, 0x2166ac, 0x053061};
constexpr std::array<std::uint32_t, 9> kGreysAnchors{
    0xffffff, 0xf0f0f0, 0xd9d9d9, 0xbdbdbd, 0x969696, 0x737373, 0x525252, 0x252525, 0x000000};

std::span<const std::uint32_t> anchors(ColorMap map) noexcept {
  switch (map) {
    case ColorMap::kViridis:
      return kViridisAnchors;
    case ColorMap::kBlues:
      return kBluesAnchors;
    case ColorMap::kYlOrRd:
      return kYlOrRdAnchors;
    case ColorMap::kRdBu:
      return kRdBuAnchors;
    case ColorMap::kGreys:
      break;
  }
  return kGreysAnchors;
}

double linear_light(std::uint8_t channel) noexcept {
  const double c = channel / 255.0;
  return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
}

}  // namespace

Rgb colormap(ColorMap map, float position) noexcept {
  const auto colors = anchors(map);
  const float clamped = position > 0 ? std::fmin(position, 1.0F) : 0.0F;
  const float place = clamped * static_cast<float>(colors.size() - 1);
  const auto left = static_cast<std::size_t>(place);
  const std::size_t right = left + 1 < colors.size() ? left + 1 : left;
  const float fraction = place - static_cast<float>(left);
  const auto channel = [&](int shift) {
    const auto from = static_cast<float>(colors[left] >> shift & 0xffU);
    const auto to = static_cast<float>(colors[right] >> shift & 0xffU);
    return static_cast<std::uint8_t>(std::lround(from + fraction * (to - from)));
  };
  return {channel(16), channel(8), channel(0)};
}

float least_scale_end(std::int64_t num_keys) noexcept {
  constexpr float kTimesUniform = 4;
  return std::fmin(1.0F, kTimesUniform / std::fmax(1.0F, static_cast<float>(num_keys)));
}

double luminance(Rgb color) noexcept {
  return 0.2126 * linear_light(color.red) + 0.7152 * linear_light(color.green) +
         0.0722 * linear_light(color.blue);
}

Rgb text_color_on(Rgb background) noexcept {
  // The contrast ratios (L + 0.05) / 0.05 of black text and 1.05 / (L + 0.05) of white text are
  // equal at L = √(1.05 · 0.05) − 0.05.
  constexpr double kEqualContrast = 0.1791;
  return luminance(background) > kEqualContrast ? Rgb{0, 0, 0} : Rgb{255, 255, 255};
}

}}  // namespace heed::v0
