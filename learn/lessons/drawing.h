// Pictures for lessons that are not in the gallery: a few small matrices, or charts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/core/tensor.h"
#include "heed/viz/figure.h"
#include "lessons/report.h"

namespace heed::learn {

// Returns a float matrix of a view whose leading extents are 1. Doubles are rounded to the number
// of decimals that the text prints: without this, rounding to float first could turn a tie into
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
  std::string bar_title = "";  // the meaning of the numbers; empty: that of the picture
  Tensor<bool> visible = {};   // of the shape of the values; empty: all are visible
};

struct MatricesPicture {
  std::string title;
  std::string note = {};
  std::vector<DrawnMatrix> matrices = {};
  // False: all matrices are weights and share one scale from 0 to 1. True: each matrix has its own
  // scale up to its largest magnitude, with both signs if its numbers have.
  bool is_signed = false;
  std::int64_t columns = 0;  // 0: all matrices in a row
  int decimals = 2;
  std::string bar_title = "weight";  // the meaning of the numbers
};

// Returns a drawing of all matrices with one colour map and one cell size.
Drawing drawing_of(MatricesPicture picture);

// The common settings of join(), which puts the panels of several figures under one title. Each
// figure's title becomes its panel's.
struct JoinedPanels {
  std::string title;
  std::string note = {};
  int width = 320;  // of each plot
  int height = 240;
};
Figure join(const JoinedPanels& joined, std::vector<Figure> figures, Theme theme);

}  // namespace heed::learn
