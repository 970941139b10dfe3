// What lessons draw beside the pictures of the gallery: a few small matrices, or charts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/core/tensor.h"
#include "heed/viz/figure.h"
#include "lessons/report.h"

namespace heed::learn {

// A matrix of float from any view whose leading extents are 1. Doubles are rounded to what a text
// prints with so many decimals: rounded once more on the way to float, a tie could come out as
// another digit.
Tensor<float> matrix_from(FloatView values);
Tensor<float> matrix_from(DoubleView values, int decimals);

struct DrawnMatrix {
  std::string title;
  Tensor<float> values;
  std::vector<std::string> queries = {};  // names of the rows; empty: numbers
  std::vector<std::string> keys = {};
  std::string query_title = "query";
  std::string key_title = "key";
  std::string bar_title = "";  // what the numbers are; empty: what those of the picture are
  Tensor<bool> visible = {};   // of the values' shape; empty: all is
};

struct MatricesPicture {
  std::string title;
  std::string note = {};
  std::vector<DrawnMatrix> matrices = {};
  // Weights share one scale from 0 to 1. Otherwise each matrix has its own, of both signs where it
  // has both, which ends at the largest number.
  bool is_signed = false;
  std::int64_t columns = 0;  // 0: all matrices in a row
  int decimals = 2;
  std::string bar_title = "weight";  // what the numbers are
};

// Draws all matrices in one colour map, with cells of one size.
Drawing drawing_of(MatricesPicture picture);

// The panels of several figures under one title; each keeps its figure's title as its own.
struct JoinedPanels {
  std::string title;
  std::string note = {};
  int width = 320;  // of each plot
  int height = 240;
};
Figure join(const JoinedPanels& joined, std::vector<Figure> figures, Theme theme);

}  // namespace heed::learn
