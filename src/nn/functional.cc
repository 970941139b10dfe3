#include "heed/nn/functional.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "core/float_environment.h"
#include "core/split_heads.h"
#include "heed/attention/reference.h"
#include "nn/ops/on_tensors.h"

namespace heed { inline namespace v0 {

namespace {

template <class Real>
Tensor<Real> linear_of(TensorView<const Real> x, const LinearParameters<Real>& parameters) {
  const FloatEnvironment environment;
  return nn::linear_forward<Real>(to_tensor(x), parameters.weight, parameters.bias);
}

template <class Real>
TensorView<const Real> heads_of(TensorView<const Real> x, std::int64_t num_heads) {
  if (x.rank() != 3) {
    throw InvalidArgument(fmt::format(
        "split_heads: x has shape {}, expected [batch, length, width]", to_string(x.shape())));
  }
  return split_width("split_heads", x, num_heads);
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
MultiHeadOutput<Real> attend(TensorView<const Real> x, TensorView<const Real> context,
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
  return linear_of(x, parameters);
}
Tensor<double> linear(DoubleView x, const LinearParameters<double>& parameters) {
  return linear_of(x, parameters);
}

Tensor<float> embedding(TensorView<const std::int64_t> token_ids, FloatView table) {
  return nn::gather_rows(token_ids, table);
}

FloatView split_heads(FloatView x, std::int64_t num_heads) { return heads_of(x, num_heads); }
DoubleView split_heads(DoubleView x, std::int64_t num_heads) { return heads_of(x, num_heads); }
Tensor<float> split_heads(Tensor<float>&& x, std::int64_t num_heads) {
  return to_tensor(heads_of<float>(x, num_heads));
}
Tensor<double> split_heads(Tensor<double>&& x, std::int64_t num_heads) {
  return to_tensor(heads_of<double>(x, num_heads));
}
Tensor<float> merge_heads(FloatView heads) { return merged(heads); }
Tensor<double> merge_heads(DoubleView heads) { return merged(heads); }

AttentionParameters<float> attention_init(TorchGenerator& generator, std::int64_t embed_dim,
                                          std::int64_t inner_dim, bool bias) {
  const FloatEnvironment environment;
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

MultiHeadOutput<float> multi_head_attention(FloatView x, FloatView context,
                                            const AttentionParameters<float>& parameters,
                                            std::int64_t num_heads,
                                            const AttentionOptions& options) {
  const FloatEnvironment environment;
  return attend(x, context, parameters, num_heads, options);
}
MultiHeadOutput<double> multi_head_attention(DoubleView x, DoubleView context,
                                             const AttentionParameters<double>& parameters,
                                             std::int64_t num_heads,
                                             const AttentionOptions64& options) {
  const FloatEnvironment environment;
  return attend(x, context, parameters, num_heads, options);
}

}}  // namespace heed::v0
