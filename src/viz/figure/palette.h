// The colours of a figure that do not represent numbers.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "heed/viz/figure.h"

namespace heed { inline namespace v0 { namespace figure {

struct Palette {
  Rgb background;
  Rgb ink;    // titles, frames
  Rgb muted;  // ticks, axis titles, notes
  Rgb grid;
  Rgb hatched;  // masked cells, and the lines on them
  Rgb hatching;
  std::array<Rgb, 7> series;
};

// Okabe and Ito's colours, which colour-blind readers can distinguish; for dark backgrounds the
// dark ones are lightened.
inline constexpr Palette kLightPalette{.background = {255, 255, 255},
                                       .ink = {0x1b, 0x1b, 0x1f},
                                       .muted = {0x5c, 0x5c, 0x66},
                                       .grid = {0xe4, 0xe4, 0xe9},
                                       .hatched = {0xf1, 0xf1, 0xf4},
                                       .hatching = {0xbd, 0xbd, 0xc7},
                                       .series = {{{0x00, 0x72, 0xb2},
                                                   {0xd5, 0x5e, 0x00},
                                                   {0x00, 0x9e, 0x73},
                                                   {0xcc, 0x79, 0xa7},
                                                   {0xe6, 0x9f, 0x00},
                                                   {0x56, 0xb4, 0xe9},
                                                   {0x77, 0x77, 0x77}}}};
inline constexpr Palette kDarkPalette{.background = {0x16, 0x17, 0x1d},
                                      .ink = {0xec, 0xec, 0xf1},
                                      .muted = {0xa6, 0xa6, 0xb2},
                                      .grid = {0x30, 0x32, 0x3c},
                                      .hatched = {0x24, 0x25, 0x2d},
                                      .hatching = {0x54, 0x56, 0x62},
                                      .series = {{{0x4c, 0xa6, 0xe0},
                                                  {0xf0, 0x80, 0x30},
                                                  {0x2c, 0xc0, 0x94},
                                                  {0xdd, 0x93, 0xbc},
                                                  {0xe6, 0xb0, 0x30},
                                                  {0x8a, 0xcf, 0xf5},
                                                  {0xb0, 0xb0, 0xb0}}}};

// The text colour in a cell of that colour; in a hatched cell, which has none, one that is readable
// on the lines too.
inline Rgb cell_text_color(const std::optional<Rgb>& cell, const Palette& colors) {
  return cell ? text_color_on(*cell) : colors.ink;
}

inline const Palette& palette(Theme theme) {
  return theme == Theme::kDark ? kDarkPalette : kLightPalette;
}

}}}  // namespace heed::v0::figure
