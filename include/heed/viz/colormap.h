/// Colour maps: from numbers to colours.
#pragma once

#include <cstdint>

#include "heed/core/config.h"

namespace heed { inline namespace v0 {

/// A colour of the sRGB space, 8 bits a channel.
struct Rgb {
  std::uint8_t red = 0;
  std::uint8_t green = 0;
  std::uint8_t blue = 0;

  friend bool operator==(const Rgb&, const Rgb&) = default;
};

/// The colour maps, with matplotlib's names and colours. Viridis goes from dark to bright; Blues,
/// YlOrRd and Greys from bright to dark; RdBu from red over white to blue, for signed quantities.
enum class ColorMap { kViridis, kBlues, kYlOrRd, kRdBu, kGreys };

/// The colour of `position` in [0, 1]; positions outside are clamped, NaN counts as 0.
HEED_API Rgb colormap(ColorMap map, float position) noexcept;

/// The least end of a scale of weights over num_keys keys: 4 / num_keys, at most 1. Uniform weights
/// then stay in the scale's first quarter.
HEED_API float least_scale_end(std::int64_t num_keys) noexcept;

/// WCAG 2 relative luminance of a colour: 0 for black, 1 for white.
HEED_API double luminance(Rgb color) noexcept;

/// Black or white, whichever has more contrast with `background`.
HEED_API Rgb text_color_on(Rgb background) noexcept;

}}  // namespace heed::v0
