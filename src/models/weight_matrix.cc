#include "heed/models/weight_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/printable.h"
#include "heed/core/error.h"
#include "models/weight_product.h"

namespace heed { inline namespace v0 { namespace models {

struct WeightMatrix::Elements {
  WeightRows rows;
  // The owner of the rows' bytes: a mapped file, floats, or copies, such as groups of 4-bit
  // weights.
  std::optional<Checkpoint> checkpoint = std::nullopt;
  Tensor<float> floats = {};
  std::vector<std::byte> bytes = {};

  void group() {
    bytes = group_rows(rows);
    rows.bytes = bytes.data();
    rows.is_grouped = true;
  }
};

namespace {

std::int64_t checked_rank(const std::string& what, const Shape& shape) {
  if (shape.rank() == 2) return shape[0];
  throw InvalidArgument(fmt::format("WeightMatrix: {} has shape {}, [rows, columns] is expected",
                                    what, heed::to_string(shape)));
}

WeightRows checked_rows(const StoredTensor& tensor) {
  const std::string what = fmt::format("tensor '{}'", io::printable(tensor.name));
  WeightRows rows{.type = tensor.type, .bytes = tensor.bytes.data()};
  rows.num_rows = checked_rank(what, tensor.shape);
  rows.columns = tensor.shape[1];
  rows.row_bytes = row_bytes(tensor.type, rows.columns);
  const std::int64_t expected = checked_multiply(rows.num_rows, rows.row_bytes);
  if (expected != std::ssize(tensor.bytes)) {
    throw InvalidArgument(fmt::format(
        "WeightMatrix: {} of shape {} takes {} bytes as {}, but has {}", what,
        heed::to_string(tensor.shape), expected, to_string(tensor.type), tensor.bytes.size()));
  }
  return rows;
}

template <class T>
void check_layout(const char* name, const TensorView<T>& view) {
  if (view.rank() == 2 && (view.extent(1) <= 1 || view.stride(1) == 1)) return;
  throw InvalidArgument(fmt::format(
      "WeightMatrix::multiply: {} has shape {}, rank 2 and contiguous rows are expected", name,
      heed::to_string(view.shape())));
}

}  // namespace

WeightMatrix::WeightMatrix(const Checkpoint& checkpoint, const StoredTensor& tensor) {
  Elements elements{.rows = checked_rows(tensor)};
  num_rows_ = elements.rows.num_rows;
  if (wants_groups(tensor.type)) {
    elements.group();
  } else {
    elements.checkpoint = checkpoint;
  }
  elements_ = std::make_shared<const Elements>(std::move(elements));
}

WeightMatrix::WeightMatrix(Tensor<float> elements) {
  WeightRows rows{.num_rows = checked_rank("elements", elements.shape()),
                  .columns = elements.extent(1)};
  rows.row_bytes = row_bytes(rows.type, rows.columns);
  rows.bytes = std::as_bytes(elements.elements()).data();
  num_rows_ = rows.num_rows;
  elements_ =
      std::make_shared<const Elements>(Elements{.rows = rows, .floats = std::move(elements)});
}

WeightMatrix WeightMatrix::without_elements(std::int64_t rows, std::int64_t columns) {
  WeightMatrix result;
  result.num_rows_ = rows;
  result.elements_ =
      std::make_shared<const Elements>(Elements{.rows = {.num_rows = rows, .columns = columns}});
  return result;
}

std::int64_t WeightMatrix::rows() const noexcept { return num_rows_; }

std::int64_t WeightMatrix::columns() const noexcept {
  return elements_ == nullptr ? 0 : elements_->rows.columns;
}

WeightType WeightMatrix::type() const noexcept {
  return elements_ == nullptr ? WeightType::kFloat32 : elements_->rows.type;
}

std::int64_t WeightMatrix::num_bytes() const noexcept {
  return elements_ == nullptr ? 0 : num_rows_ * elements_->rows.row_bytes;
}

WeightMatrix WeightMatrix::slice_rows(std::int64_t begin, std::int64_t end) const {
  if (begin < 0 || begin > end || end > num_rows_) {
    throw InvalidArgument(fmt::format(
        "WeightMatrix::slice_rows: [{}, {}) is not within the {} rows", begin, end, num_rows_));
  }
  WeightMatrix result = *this;
  result.first_row_ += begin;
  result.num_rows_ = end - begin;
  return result;
}

WeightMatrix WeightMatrix::copy_rows(std::int64_t begin, std::int64_t step, std::int64_t count,
                                     std::int64_t size) const {
  const bool is_within = begin >= 0 && begin <= num_rows_ && size >= 1 &&
                         size <= num_rows_ - begin && step >= size && count >= 1 &&
                         count - 1 <= (num_rows_ - begin - size) / step;
  if (!is_within) {
    throw InvalidArgument(
        fmt::format("WeightMatrix::copy_rows: {} times {} rows, one every {} from {} on, are not "
                    "within the {} rows",
                    count, size, step, begin, num_rows_));
  }
  const WeightRows& w = elements_->rows;
  const auto row_bytes = static_cast<std::size_t>(w.row_bytes);
  Elements copies{.rows = w};
  copies.rows.num_rows = count * size;
  copies.rows.is_grouped = false;
  copies.bytes.resize(static_cast<std::size_t>(copies.rows.num_rows) * row_bytes);
  std::vector<std::byte> memory(row_bytes);
  std::byte* to = copies.bytes.data();
  for (std::int64_t i = 0; i < copies.rows.num_rows; ++i, to += row_bytes) {
    const std::int64_t row = first_row_ + begin + i / size * step + i % size;
    const std::byte* from = stored_columns(w, row, 0, w.columns, memory.data());
    std::copy_n(from, row_bytes, to);
  }
  copies.rows.bytes = copies.bytes.data();
  if (w.is_grouped) copies.group();
  WeightMatrix result;
  result.num_rows_ = copies.rows.num_rows;
  result.elements_ = std::make_shared<const Elements>(std::move(copies));
  return result;
}

void WeightMatrix::row(std::int64_t index, std::span<float> out) const {
  if (index < 0 || index >= num_rows_) {
    throw InvalidArgument(
        fmt::format("WeightMatrix::row: index is {}, there are {} rows", index, num_rows_));
  }
  if (std::ssize(out) != columns()) {
    throw InvalidArgument(fmt::format("WeightMatrix::row: out has {} elements, {} are expected",
                                      out.size(), columns()));
  }
  const WeightRows& w = elements_->rows;
  std::vector<std::byte> memory(static_cast<std::size_t>(w.is_grouped ? w.row_bytes : 0));
  const std::byte* const stored =
      stored_columns(w, first_row_ + index, 0, w.columns, memory.data());
  weight_kernels_in_use().decode(w.type, stored, w.columns, out.data());
}

Tensor<float> WeightMatrix::to_float() const {
  auto result = Tensor<float>::uninitialized({rows(), columns()});
  const auto elements = result.elements();
  const auto width = static_cast<std::size_t>(columns());
  for (std::int64_t i = 0; i < num_rows_; ++i) {
    row(i, elements.subspan(static_cast<std::size_t>(i) * width, width));
  }
  return result;
}

void WeightMatrix::multiply(FloatView x, std::span<const float> bias, TensorView<float> out) const {
  check_layout("x", x);
  check_layout("out", out);
  if (x.extent(1) != columns()) {
    throw InvalidArgument(fmt::format("WeightMatrix::multiply: x has {} columns, the weights {}",
                                      x.extent(1), columns()));
  }
  if (const Shape expected{x.extent(0), rows()}; out.shape() != expected) {
    throw InvalidArgument(fmt::format("WeightMatrix::multiply: out has shape {}, {} is expected",
                                      heed::to_string(out.shape()), heed::to_string(expected)));
  }
  if (!bias.empty() && std::ssize(bias) != rows()) {
    throw InvalidArgument(fmt::format(
        "WeightMatrix::multiply: bias has {} elements, {} are expected", bias.size(), rows()));
  }
  if (out.empty()) return;
  models::multiply(weight_kernels_in_use(),
                   elements_->rows.slice(first_row_, first_row_ + num_rows_), x, bias, out);
}

}}}  // namespace heed::v0::models
