// Figures compared by their pixels.
#include <cairo.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>

#include "support/places.h"
#include "viz/figure/golden_versions.h"
#include "viz/figure/sample_figures.h"

namespace heed { namespace {

struct Pixels {
  int width = 0;
  int height = 0;
  std::vector<std::uint32_t> colors;
};

cairo_status_t read_bytes(void* source, unsigned char* data, unsigned int size) {
  auto& left = *static_cast<std::string_view*>(source);
  if (left.size() < size) return CAIRO_STATUS_READ_ERROR;
  std::memcpy(data, left.data(), size);
  left.remove_prefix(size);
  return CAIRO_STATUS_SUCCESS;
}

Pixels decode(std::string_view png) {
  cairo_surface_t* surface = cairo_image_surface_create_from_png_stream(read_bytes, &png);
  Pixels pixels{
      cairo_image_surface_get_width(surface), cairo_image_surface_get_height(surface), {}};
  pixels.colors.resize(static_cast<std::size_t>(pixels.width) *
                       static_cast<std::size_t>(pixels.height));
  const unsigned char* line = cairo_image_surface_get_data(surface);
  for (int y = 0; y < pixels.height; ++y, line += cairo_image_surface_get_stride(surface)) {
    std::memcpy(pixels.colors.data() + static_cast<std::ptrdiff_t>(y) * pixels.width, line,
                4 * static_cast<std::size_t>(pixels.width));
  }
  cairo_surface_destroy(surface);
  return pixels;
}

Pixels draw(const Figure& figure) { return decode(render_figure(figure, FigureFormat::kPng)); }

std::size_t count_of(const Pixels& pixels, Rgb color) {
  const std::uint32_t wanted =
      std::uint32_t{color.red} << 16U | std::uint32_t{color.green} << 8U | color.blue;
  std::size_t count = 0;
  for (const std::uint32_t pixel : pixels.colors) count += (pixel & 0xffffffU) == wanted ? 1 : 0;
  return count;
}

// Returns the mean distance of a channel, of 255, over all pixels.
double mean_distance(const Pixels& a, const Pixels& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.colors.size(); ++i) {
    for (const unsigned shift : {0U, 8U, 16U}) {
      const auto channel = [shift](std::uint32_t pixel) {
        return static_cast<int>(pixel >> shift & 0xffU);
      };
      sum += std::abs(channel(a.colors[i]) - channel(b.colors[i]));
    }
  }
  return sum / (3 * static_cast<double>(a.colors.size()));
}

// Versions of cairo and freetype smooth letters differently, which changes the mean by a few
// tenths; one wrong cell of this picture changes it by more than 5.
TEST(FigurePixels, AreTheGoldenOnes) {
  constexpr double kTolerance = 1;
  const std::string path = testing_support::test_data() + "/figures/weights.png";
  const std::string png = render_figure(testing_support::sample_weights(), FigureFormat::kPng);
  if (std::getenv("HEED_WRITE_GOLDEN") != nullptr) std::ofstream(path, std::ios::binary) << png;
  std::ifstream stream(path, std::ios::binary);
  const std::string golden{std::istreambuf_iterator<char>(stream), {}};
  const Pixels expected = decode(golden);
  const Pixels found = decode(png);
  if (found.width != expected.width || found.height != expected.height) {
    ASSERT_NE(testing_support::drawing_versions(), testing_support::kGoldenVersions)
        << found.width << " × " << found.height;
    GTEST_SKIP() << "another font has made the picture another size";
  }
  EXPECT_LT(mean_distance(found, expected), kTolerance);
}

TEST(FigurePixels, ASingleStrongCellOfALargeMatrixIsDrawn) {
  Tensor<float> weights({2000, 3000});
  weights(1234, 2345) = 1;
  const Pixels pixels = draw(attention_figure(weights));
  EXPECT_GE(count_of(pixels, colormap(ColorMap::kViridis, 1)), 4U);
}

TEST(FigurePixels, ThemesHaveTheirGround) {
  EXPECT_EQ(draw(testing_support::sample_weights()).colors[0] & 0xffffffU, 0xffffffU);
  EXPECT_EQ(draw(testing_support::sample_weights(Theme::kDark)).colors[0] & 0xffffffU, 0x16171dU);
}

TEST(FigurePixels, MaskedCellsDifferFromCellsOfZero) {
  const Tensor<float> weights({2, 2}, {1, 0, 0, 1});
  const Tensor<bool> visible = testing_support::causal_square(2);
  const Rgb zero = colormap(ColorMap::kViridis, 0);
  const std::size_t all = count_of(draw(attention_figure(weights, {.decimals = -1})), zero);
  const std::size_t seen =
      count_of(draw(attention_figure(weights, {.visible = visible, .decimals = -1})), zero);
  EXPECT_GT(seen, 5000U);
  EXPECT_LT(static_cast<double>(seen), 0.6 * static_cast<double>(all));
}

}  // namespace
}  // namespace heed
