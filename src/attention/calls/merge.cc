// Merges parts of attention over different keys by an online softmax, in which the lse of a row of
// a part is a score and its out the value.
#include "heed/attention/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/float_environment.h"
#include "heed/attention/online_softmax.h"
#include "heed/core/cancellation.h"
#include "heed/core/parallel.h"

namespace heed { inline namespace v0 {

namespace detail {

void throw_value_dim(const char* function, std::size_t found, std::size_t expected) {
  throw InvalidArgument(
      fmt::format("{}: {} elements, expected value_dim, {}", function, found, expected));
}

}  // namespace detail

namespace {

// The number of elements, over all parts, that a thread merges at a time.
constexpr std::int64_t kMergeGrain = 1 << 16;

template <class T, class Lse>
using Parts = std::span<const AttentionOutputView<T, Lse>>;

Shape without_last(const Shape& shape) {
  return Shape(std::span(shape.begin(), static_cast<std::size_t>(shape.rank() - 1)));
}

template <class T, class Lse>
void check_fit(Parts<T, Lse> parts) {
  if (parts.empty()) throw InvalidArgument("merge_attention: 0 parts, expected at least 1");
  const Shape& shape = parts[0].out.shape();
  if (shape.rank() == 0) {
    throw InvalidArgument("merge_attention: out of part 0 is a scalar, expected [..., value_dim]");
  }
  const Shape rows = without_last(shape);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto& out = parts[i].out;
    const auto& lse = parts[i].lse;
    if (out.shape() != shape) {
      throw InvalidArgument(fmt::format("merge_attention: out of part {} has shape {}, expected {}",
                                        i, to_string(out.shape()), to_string(shape)));
    }
    if (lse.shape() != rows) {
      throw InvalidArgument(fmt::format("merge_attention: lse of part {} has shape {}, expected {}",
                                        i, to_string(lse.shape()), to_string(rows)));
    }
    if (const auto& low = parts[i].lse_low; !low.empty() && low.shape() != rows) {
      throw InvalidArgument(
          fmt::format("merge_attention: lse_low of part {} has shape {}, expected {}", i,
                      to_string(low.shape()), to_string(rows)));
    }
    if (shape[-1] > 1 && out.stride(-1) != 1) {
      throw InvalidArgument(fmt::format(
          "merge_attention: out of part {} has stride {} in its innermost dimension, expected 1", i,
          out.stride(-1)));
    }
  }
}

// The first element of a row of `view`. Rows are numbered in row-major order of the shape `rows`.
template <class T>
T* merged_row(const TensorView<T>& view, const Shape& rows, std::int64_t row) {
  T* data = view.data();
  for (int dim = rows.rank() - 1; dim >= 0; --dim) {
    data += row % rows[dim] * view.stride(dim);
    row /= rows[dim];
  }
  return data;
}

// An lse with its rounding error added.
template <class T, class Lse>
double lse_of(const AttentionOutputView<T, Lse>& part, const Shape& rows, std::int64_t row) {
  const double lse = *merged_row(part.lse, rows, row);
  return part.lse_low.empty() ? lse : lse + double{*merged_row(part.lse_low, rows, row)};
}

template <class T, class Lse>
AttentionOutput<T, Lse> merge(Parts<T, Lse> parts) {
  const FloatEnvironment environment;
  check_fit(parts);
  const Shape& shape = parts[0].out.shape();
  const Shape rows = without_last(shape);
  const std::int64_t value_dim = shape[-1];
  AttentionOutput<T, Lse> result{Tensor<T>::uninitialized(shape), Tensor<Lse>::uninitialized(rows),
                                 Tensor<Lse>::uninitialized(rows)};
  const std::int64_t row_elements =
      std::max<std::int64_t>(value_dim, 1) * static_cast<std::int64_t>(parts.size());
  const std::int64_t grain = std::max<std::int64_t>(kMergeGrain / row_elements, 1);
  parallel_for(0, rows.num_elements(), grain, [&](std::int64_t first, std::int64_t last) {
    check_cancelled();
    OnlineSoftmax<double> softmax(static_cast<std::size_t>(value_dim));
    std::vector<double> values(softmax.out.size());
    for (std::int64_t row = first; row < last; ++row) {
      softmax.clear();
      for (const AttentionOutputView<T, Lse>& part : parts) {
        std::copy_n(merged_row(part.out, rows, row), value_dim, values.begin());
        softmax.add(lse_of(part, rows, row), values);
      }
      const double lse = softmax.normalise(values);
      const auto rounded = static_cast<Lse>(lse);
      result.lse.data()[row] = rounded;
      result.lse_low.data()[row] =
          std::isfinite(rounded) ? static_cast<Lse>(lse - double{rounded}) : Lse{0};
      std::transform(values.begin(), values.end(), result.out.data() + row * value_dim,
                     [](double value) { return static_cast<T>(value); });
    }
  });
  return result;
}

template <class T, class Lse>
AttentionOutput<T, Lse> merge(const AttentionOutputView<T, Lse>& a,
                              const AttentionOutputView<T, Lse>& b) {
  const FloatEnvironment environment;
  const std::array<AttentionOutputView<T, Lse>, 2> parts{a, b};
  return merge(Parts<T, Lse>(parts));
}

}  // namespace

AttentionOutput<float> merge_attention(std::span<const AttentionOutputView<float>> parts) {
  return merge(parts);
}

AttentionOutput<Float16, float> merge_attention(
    std::span<const AttentionOutputView<Float16, float>> parts) {
  return merge(parts);
}

AttentionOutput<BFloat16, float> merge_attention(
    std::span<const AttentionOutputView<BFloat16, float>> parts) {
  return merge(parts);
}

AttentionOutput<double> merge_attention(std::span<const AttentionOutputView<double>> parts) {
  return merge(parts);
}

AttentionOutput<float> merge_attention(const AttentionOutputView<float>& a,
                                       const AttentionOutputView<float>& b) {
  return merge(a, b);
}

AttentionOutput<Float16, float> merge_attention(const AttentionOutputView<Float16, float>& a,
                                                const AttentionOutputView<Float16, float>& b) {
  return merge(a, b);
}

AttentionOutput<BFloat16, float> merge_attention(const AttentionOutputView<BFloat16, float>& a,
                                                 const AttentionOutputView<BFloat16, float>& b) {
  return merge(a, b);
}

AttentionOutput<double> merge_attention(const AttentionOutputView<double>& a,
                                        const AttentionOutputView<double>& b) {
  return merge(a, b);
}

}}  // namespace heed::v0
