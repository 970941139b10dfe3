#include "heed/nn/functional.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/blas.h"
#include "heed/reference.h"

namespace heed::inline v0 {

namespace {

// `shape` with its innermost extent replaced.
Shape with_width(const Shape& shape, std::int64_t width) {
  std::array<std::int64_t, kMaxRank> extents{};
  std::copy(shape.begin(), shape.end(), extents.begin());
  extents[static_cast<std::size_t>(shape.rank() - 1)] = width;
  return Shape(std::span(extents.data(), static_cast<std::size_t>(shape.rank())));
}

template <class Real>
void check_linear(TensorView<const Real> x, const LinearParameters<Real>& parameters) {
  const Tensor<Real>& weight = parameters.weight;
  if (weight.rank() != 2) {
    throw InvalidArgument(
        fmt::format("linear: weight has shape {}, expected [out_features, in_features]",
                    to_string(weight.shape())));
  }
  if (x.rank() == 0 || x.extent(-1) != weight.extent(1)) {
    throw InvalidArgument(
        fmt::format("linear: x has shape {} but weight {}: their last extents differ",
                    to_string(x.shape()), to_string(weight.shape())));
  }
  if (!parameters.bias.empty() && parameters.bias.shape() != Shape{weight.extent(0)}) {
    throw InvalidArgument(fmt::format("linear: bias has shape {}, expected [{}]",
                                      to_string(parameters.bias.shape()), weight.extent(0)));
  }
}

template <class Real>
Tensor<Real> apply_linear(TensorView<const Real> x, const LinearParameters<Real>& parameters) {
  check_linear(x, parameters);
  const std::int64_t in_features = x.extent(-1);
  const std::int64_t out_features = parameters.weight.extent(0);
  const Tensor<Real> rows = to_tensor(x);
  Tensor<Real> y(with_width(x.shape(), out_features));
  if (y.empty()) return y;
  const std::int64_t count = y.num_elements() / out_features;
  const TensorView<Real> out = y.view().reshape({count, out_features});
  if (in_features != 0) {
    matmul(rows.view().reshape({count, in_features}), parameters.weight.view().permute({1, 0}),
           out);
  }
  if (parameters.bias.empty()) return y;
  for (std::int64_t row = 0; row < count; ++row) {
    for (std::int64_t i = 0; i < out_features; ++i) out(row, i) += parameters.bias(i);
  }
  return y;
}

template <class Real>
TensorView<const Real> heads_of(TensorView<const Real> x, std::int64_t num_heads) {
  if (x.rank() != 3) {
    throw InvalidArgument(fmt::format(
        "split_heads: x has shape {}, expected [batch, length, width]", to_string(x.shape())));
  }
  if (num_heads < 1 || x.extent(2) % num_heads != 0) {
    throw InvalidArgument(fmt::format("split_heads: width {} is not a multiple of num_heads, {}",
                                      x.extent(2), num_heads));
  }
  const std::int64_t head_dim = x.extent(2) / num_heads;
  return {x.data(), Shape{x.extent(0), num_heads, x.extent(1), head_dim},
          Strides{x.stride(0), head_dim * x.stride(2), x.stride(1), x.stride(2)}};
}

template <class Real>
Tensor<Real> merged(TensorView<const Real> heads) {
  if (heads.rank() != 4) {
    throw InvalidArgument(fmt::format(
        "merge_heads: heads has shape {}, expected [batch, num_heads, length, head_dim]",
        to_string(heads.shape())));
  }
  const Shape width{heads.extent(0), heads.extent(2), heads.extent(1) * heads.extent(3)};
  return to_tensor(heads.permute({0, 2, 1, 3})).reshaped(width);
}

template <class Real>
Attended<Real> attend(TensorView<const Real> x, TensorView<const Real> context,
                      const AttentionParameters<Real>& parameters, std::int64_t num_heads,
                      const BasicAttentionOptions<Real>& options) {
  const Tensor<Real> query = linear(x, parameters.query);
  const Tensor<Real> key = linear(context, parameters.key);
  const Tensor<Real> value = linear(context, parameters.value);
  auto result =
      reference::attention(split_heads(query, num_heads), split_heads(key, num_heads),
                           split_heads(value, num_heads), options, reference::Keep::kDropped);
  return {linear(merge_heads(result.out), parameters.out), std::move(result.dropped)};
}

}  // namespace

Tensor<float> linear(FloatView x, const LinearParameters<float>& parameters) {
  return apply_linear(x, parameters);
}
Tensor<double> linear(DoubleView x, const LinearParameters<double>& parameters) {
  return apply_linear(x, parameters);
}

Tensor<float> embedding(TensorView<const std::int64_t> token_ids, FloatView table) {
  if (table.rank() != 2) {
    throw InvalidArgument(
        fmt::format("embedding: table has shape {}, expected [num_embeddings, embedding_dim]",
                    to_string(table.shape())));
  }
  std::array<std::int64_t, kMaxRank + 1> extents{};
  const auto rank = static_cast<std::size_t>(token_ids.rank());
  std::copy(token_ids.shape().begin(), token_ids.shape().end(), extents.begin());
  extents[rank] = table.extent(1);
  auto result = Tensor<float>::uninitialized(Shape(std::span(extents.data(), rank + 1)));
  float* out = result.data();
  for_each_element(token_ids, [&](std::int64_t id) {
    if (id < 0 || id >= table.extent(0)) {
      throw InvalidArgument(
          fmt::format("embedding: token id {} is not in the table of {}", id, table.extent(0)));
    }
    for_each_element(table.select(0, id), [&out](float element) { *out++ = element; });
  });
  return result;
}

FloatView split_heads(FloatView x, std::int64_t num_heads) { return heads_of(x, num_heads); }
DoubleView split_heads(DoubleView x, std::int64_t num_heads) { return heads_of(x, num_heads); }
Tensor<float> merge_heads(FloatView heads) { return merged(heads); }
Tensor<double> merge_heads(DoubleView heads) { return merged(heads); }

AttentionParameters<float> attention_init(TorchGenerator& generator, std::int64_t embed_dim,
                                          std::int64_t inner_dim, bool bias) {
  AttentionParameters<float> parameters;
  parameters.query = linear_init(generator, embed_dim, inner_dim, bias);
  parameters.key = linear_init(generator, embed_dim, inner_dim, bias);
  parameters.value = linear_init(generator, embed_dim, inner_dim, bias);
  parameters.out = linear_init(generator, inner_dim, embed_dim, bias);
  return parameters;
}

std::array<LinearParameters<float>, 3> split_qkv(const LinearParameters<float>& fused) {
  const std::int64_t outputs = fused.weight.rank() == 2 ? fused.weight.extent(0) : -1;
  if (outputs < 0 || outputs % 3 != 0) {
    throw InvalidArgument(
        fmt::format("split_qkv: weight has shape {}, expected [3 · inner_dim, embed_dim]",
                    to_string(fused.weight.shape())));
  }
  std::array<LinearParameters<float>, 3> parts;
  for (std::int64_t i = 0; i < 3; ++i) {
    const auto part = [=](FloatView view) {
      return to_tensor(view.slice(0, i * outputs / 3, (i + 1) * outputs / 3));
    };
    parts[static_cast<std::size_t>(i)].weight = part(fused.weight);
    if (!fused.bias.empty()) parts[static_cast<std::size_t>(i)].bias = part(fused.bias);
  }
  return parts;
}

Attended<float> multi_head_attention(FloatView x, FloatView context,
                                     const AttentionParameters<float>& parameters,
                                     std::int64_t num_heads, const AttentionOptions& options) {
  return attend(x, context, parameters, num_heads, options);
}
Attended<double> multi_head_attention(DoubleView x, DoubleView context,
                                      const AttentionParameters<double>& parameters,
                                      std::int64_t num_heads, const AttentionOptions64& options) {
  return attend(x, context, parameters, num_heads, options);
}

}  // namespace heed::inline v0
