#include "heed/attention/position.h"

#include <fmt/format.h>

#include <cmath>

#include "core/float_environment.h"
#include "heed/core/elementary.h"

namespace heed { inline namespace v0 {

namespace {

void check_sizes(const char* function, std::int64_t max_len, std::int64_t d_model) {
  if (max_len < 0 || d_model < 0) {
    throw InvalidArgument(fmt::format("{}: max_len is {} and d_model is {}; expected at least 0",
                                      function, max_len, d_model));
  }
}

void check_positions(const Shape& x, const Shape& table) {
  if (x.rank() != 2 && x.rank() != 3) {
    throw InvalidArgument(fmt::format(
        "add_positions: x has shape {}; expected [seq_len, d_model] or [batch, seq_len, d_model]",
        to_string(x)));
  }
  if (table.rank() != 2) {
    throw InvalidArgument(fmt::format(
        "add_positions: table has shape {}; expected [max_len, d_model]", to_string(table)));
  }
  if (x[-1] != table[-1]) {
    throw InvalidArgument(
        fmt::format("add_positions: x d_model is {} but table d_model is {}", x[-1], table[-1]));
  }
  if (x[-2] > table[0]) {
    throw InvalidArgument(fmt::format(
        "add_positions: x has {} positions but the table holds only {}", x[-2], table[0]));
  }
}

template <class T>
Tensor<T> sum_with_positions(TensorView<const T> x, TensorView<const T> table) {
  const FloatEnvironment environment;
  check_positions(x.shape(), table.shape());
  const auto positions = table.slice(0, 0, x.extent(-2)).broadcast_to(x.shape());
  Tensor<T> result = to_tensor(x);
  T* out = result.data();
  for_each_element(positions, [&out](const T& position) { *out++ += position; });
  return result;
}

}  // namespace

template <class T>
Tensor<T> sinusoidal_encoding(std::int64_t max_len, std::int64_t d_model) {
  const FloatEnvironment environment;
  check_sizes("sinusoidal_encoding", max_len, d_model);
  if (d_model % 2 != 0) {
    throw InvalidArgument(
        fmt::format("sinusoidal_encoding: d_model is {}; expected an even number: dimensions come "
                    "in pairs of a sine and a cosine, and the rotation of each pair is what makes "
                    "relative positions linear",
                    d_model));
  }
  auto table = Tensor<T>::uninitialized({max_len, d_model});
  for (std::int64_t dim = 0; dim < d_model; dim += 2) {
    const double exponent = static_cast<double>(dim) / static_cast<double>(d_model);
    const double wavelength = elementary::pow(10000.0, exponent);  // in positions, divided by 2π
    for (std::int64_t position = 0; position < max_len; ++position) {
      const double angle = static_cast<double>(position) / wavelength;
      table(position, dim) = static_cast<T>(elementary::sin(angle));
      table(position, dim + 1) = static_cast<T>(elementary::cos(angle));
    }
  }
  return table;
}

template <class T>
Tensor<T> learned_encoding(TorchGenerator& generator, std::int64_t max_len, std::int64_t d_model,
                           double std) {
  check_sizes("learned_encoding", max_len, d_model);
  auto table = Tensor<T>::uninitialized({max_len, d_model});
  generator.normal(table, 0, std);
  return table;
}

Tensor<float> add_positions(TensorView<const float> x, TensorView<const float> table) {
  return sum_with_positions(x, table);
}

Tensor<double> add_positions(TensorView<const double> x, TensorView<const double> table) {
  return sum_with_positions(x, table);
}

template HEED_API Tensor<float> sinusoidal_encoding(std::int64_t, std::int64_t);
template HEED_API Tensor<double> sinusoidal_encoding(std::int64_t, std::int64_t);
template HEED_API Tensor<float> learned_encoding(TorchGenerator&, std::int64_t, std::int64_t,
                                                 double);
template HEED_API Tensor<double> learned_encoding(TorchGenerator&, std::int64_t, std::int64_t,
                                                  double);

template <class T>
Tensor<T> alibi_slopes(std::int64_t num_heads) {
  const FloatEnvironment environment;
  if (num_heads < 0) {
    throw InvalidArgument(
        fmt::format("alibi_slopes: num_heads is {}, expected at least 0", num_heads));
  }
  std::int64_t whole = 1;  // the largest power of two up to num_heads
  while (whole <= num_heads / 2) whole *= 2;
  auto slopes = Tensor<T>::uninitialized({num_heads});
  for (std::int64_t h = 0; h < num_heads; ++h) {
    const auto steps = static_cast<double>(h < whole ? 2 * (h + 1) : 2 * (h - whole) + 1);
    slopes(h) = static_cast<T>(elementary::exp2(-4 * steps / static_cast<double>(whole)));
  }
  return slopes;
}

template HEED_API Tensor<float> alibi_slopes(std::int64_t);
template HEED_API Tensor<double> alibi_slopes(std::int64_t);

}}  // namespace heed::v0
