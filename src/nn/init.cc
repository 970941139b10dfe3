#include "heed/nn/init.h"

#include <fmt/format.h>

#include <cmath>

#include "core/float_environment.h"

namespace heed { inline namespace v0 {

namespace {

void check_size(const char* function, const char* argument, std::int64_t size) {
  if (size < 0) {
    throw InvalidArgument(
        fmt::format("{}: {} is {}; expected at least 0", function, argument, size));
  }
}

// Equal to 1/√fan_in except for rounding: PyTorch computes it through gain and standard deviation,
// and the last bit of weights in double depends on that.
double kaiming_uniform_bound(std::int64_t fan_in) {
  const double a = std::sqrt(5.0);
  const double gain = std::sqrt(2 / (1 + a * a));
  const double std = gain / std::sqrt(static_cast<double>(fan_in));
  return std::sqrt(3.0) * std;
}

}  // namespace

template <class T>
Tensor<T> embedding_weight(TorchGenerator& generator, std::int64_t num_embeddings,
                           std::int64_t embedding_dim) {
  const FloatEnvironment environment;
  check_size("embedding_weight", "num_embeddings", num_embeddings);
  check_size("embedding_weight", "embedding_dim", embedding_dim);
  return generator.randn<T>({num_embeddings, embedding_dim});
}

template <class T>
LinearParameters<T> linear_init(TorchGenerator& generator, std::int64_t in_features,
                                std::int64_t out_features, bool bias) {
  const FloatEnvironment environment;
  check_size("linear_init", "in_features", in_features);
  check_size("linear_init", "out_features", out_features);
  LinearParameters<T> linear;
  linear.weight = Tensor<T>::uninitialized({out_features, in_features});
  if (bias) linear.bias = Tensor<T>::uninitialized({out_features});

  const bool has_inputs = in_features > 0;  // without inputs the bounds are 0
  const double weight_bound = has_inputs ? kaiming_uniform_bound(in_features) : 0;
  const double bias_bound = has_inputs ? 1 / std::sqrt(static_cast<double>(in_features)) : 0;
  generator.uniform(linear.weight, -weight_bound, weight_bound);
  generator.uniform(linear.bias, -bias_bound, bias_bound);
  return linear;
}

template HEED_API Tensor<float> embedding_weight(TorchGenerator&, std::int64_t, std::int64_t);
template HEED_API Tensor<double> embedding_weight(TorchGenerator&, std::int64_t, std::int64_t);
template HEED_API LinearParameters<float> linear_init(TorchGenerator&, std::int64_t, std::int64_t,
                                                      bool);
template HEED_API LinearParameters<double> linear_init(TorchGenerator&, std::int64_t, std::int64_t,
                                                       bool);

}}  // namespace heed::v0
