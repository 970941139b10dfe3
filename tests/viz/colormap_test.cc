#include "heed/viz/colormap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace heed {
namespace {

int largest_difference(Rgb a, Rgb b) {
  return std::max(
      {std::abs(a.red - b.red), std::abs(a.green - b.green), std::abs(a.blue - b.blue)});
}

// matplotlib's colours at positions i/255.
struct Published {
  ColorMap map;
  std::array<Rgb, 6> colors;
};
constexpr std::array<int, 6> kSamples{0, 51, 100, 128, 200, 255};
const std::array<Published, 5> kPublished{{
    {ColorMap::kViridis,
     {{{68, 1, 84},
       {65, 68, 135},
       {42, 118, 142},
       {33, 145, 140},
       {112, 207, 87},
       {253, 231, 37}}}},
    {ColorMap::kBlues,
     {{{247, 251, 255},
       {208, 225, 242},
       {151, 198, 223},
       {106, 174, 214},
       {26, 104, 174},
       {8, 48, 107}}}},
    {ColorMap::kYlOrRd,
     {{{255, 255, 204},
       {254, 225, 135},
       {254, 173, 74},
       {253, 140, 60},
       {217, 19, 31},
       {128, 0, 38}}}},
    {ColorMap::kRdBu,
     {{{103, 0, 31},
       {214, 96, 77},
       {252, 215, 194},
       {246, 247, 247},
       {79, 155, 199},
       {5, 48, 97}}}},
    {ColorMap::kGreys,
     {{{255, 255, 255},
       {226, 226, 226},
       {184, 184, 184},
       {149, 149, 149},
       {70, 70, 70},
       {0, 0, 0}}}},
}};

TEST(ColorMap, MatchesThePublishedColors) {
  for (const Published& published : kPublished) {
    for (std::size_t i = 0; i < kSamples.size(); ++i) {
      const Rgb color = colormap(published.map, static_cast<float>(kSamples[i]) / 255);
      EXPECT_LE(largest_difference(color, published.colors[i]), 2)
          << "map " << static_cast<int>(published.map) << " at " << kSamples[i];
    }
  }
}

TEST(ColorMap, ClampsThePosition) {
  const Rgb first = colormap(ColorMap::kBlues, 0);
  const Rgb last = colormap(ColorMap::kBlues, 1);
  EXPECT_EQ(colormap(ColorMap::kBlues, -3), first);
  EXPECT_EQ(colormap(ColorMap::kBlues, std::nanf("")), first);
  EXPECT_EQ(colormap(ColorMap::kBlues, 1.5F), last);
  EXPECT_EQ(colormap(ColorMap::kBlues, std::numeric_limits<float>::infinity()), last);
}

TEST(ColorMap, ViridisGetsBrighterAllTheWay) {
  double previous = -1;
  for (int i = 0; i < 256; ++i) {
    const double current = luminance(colormap(ColorMap::kViridis, static_cast<float>(i) / 255));
    EXPECT_GT(current, previous - 1e-3);
    previous = current;
  }
}

TEST(ColorMap, LuminanceIsWcag) {
  EXPECT_DOUBLE_EQ(luminance({0, 0, 0}), 0);
  EXPECT_NEAR(luminance({255, 255, 255}), 1, 1e-12);
  EXPECT_NEAR(luminance({255, 0, 0}), 0.2126, 1e-12);
  EXPECT_NEAR(luminance({188, 188, 188}), 0.5029, 1e-4);
}

TEST(ColorMap, TextHasContrastOnEveryColor) {
  for (const Published& published : kPublished) {
    for (int i = 0; i < 256; ++i) {
      const Rgb background = colormap(published.map, static_cast<float>(i) / 255);
      const double a = luminance(background) + 0.05;
      const double b = luminance(text_color_on(background)) + 0.05;
      EXPECT_GE(std::max(a, b) / std::min(a, b), 4.5);
    }
  }
}

}  // namespace
}  // namespace heed
