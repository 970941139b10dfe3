#include <fmt/format.h>

#include "attention/masks/dropout_mask.h"
#include "core/float_environment.h"
#include "heed/core/dual.h"
#include "heed/nn/ops.h"
#include "nn/ops/elementwise.h"

namespace heed { inline namespace v0 { namespace nn {

namespace {

// A function whose derivative is `slope` of the function's value.
template <class T, class F, class Slope>
Variable<T> through_value(const char* name, const Variable<T>& x, F f, Slope slope) {
  const FloatEnvironment environment;
  const Value<T> y(map(x.value(), f));
  return record<T>(name, y, {x}, [y = Saved(y), slope](Step<T>& step) {
    step.give(0,
              map(step.grad(), y.view(), [slope](T grad, T of_y) { return grad * slope(of_y); }));
  });
}

}  // namespace

template <class T>
Variable<T> relu(const Variable<T>& x) {
  return through_value(
      "relu", x, [](T in) { return in < 0 ? T{0} : in; }, [](T y) { return y > 0 ? T{1} : T{0}; });
}

template <class T>
Variable<T> tanh(const Variable<T>& x) {
  return through_value(
      "tanh", x, [](T in) { return heed::tanh(in); }, [](T y) { return 1 - y * y; });
}

template <class T>
Variable<T> sigmoid(const Variable<T>& x) {
  return through_value(
      "sigmoid", x, [](T in) { return 1 / (1 + heed::exp(-in)); }, [](T y) { return y * (1 - y); });
}

template <class T>
Variable<T> exp(const Variable<T>& x) {
  return through_value(
      "exp", x, [](T in) { return heed::exp(in); }, [](T y) { return y; });
}

template <class T>
Variable<T> log(const Variable<T>& x) {
  const FloatEnvironment environment;
  return record<T>("log", map(x.value(), [](T in) { return heed::log(in); }), {x},
                   [x = Saved(x)](Step<T>& step) {
                     step.give(0,
                               map(step.grad(), x.view(), [](T grad, T in) { return grad / in; }));
                   });
}

template HEED_API Variable<float> relu(const Variable<float>&);
template HEED_API Variable<float> tanh(const Variable<float>&);
template HEED_API Variable<float> sigmoid(const Variable<float>&);
template HEED_API Variable<float> exp(const Variable<float>&);
template HEED_API Variable<float> log(const Variable<float>&);
template HEED_API Variable<double> relu(const Variable<double>&);
template HEED_API Variable<double> tanh(const Variable<double>&);
template HEED_API Variable<double> sigmoid(const Variable<double>&);
template HEED_API Variable<double> exp(const Variable<double>&);
template HEED_API Variable<double> log(const Variable<double>&);

namespace {

// The position in attention weights whose random bits element `index` uses: eight adjacent elements
// share a counter.
ScorePosition position_of(std::int64_t index) {
  constexpr std::int64_t kKeys = std::int64_t{1} << 30;
  return {0, 0, static_cast<std::int32_t>(index / kKeys), static_cast<std::int32_t>(index % kKeys)};
}

template <class T>
Tensor<T> drop(TensorView<const T> x, const heed::Dropout& dropout) {
  constexpr std::int64_t kShared = 8;
  const DropoutMask mask(dropout);
  auto result = Tensor<T>::uninitialized(x.shape());
  const T* in = x.data();
  T* out = result.data();
  // The grain is a multiple of kShared, so that one thread computes all elements of a counter.
  parallel_for(0, x.num_elements(), kElementGrain, [&](std::int64_t first, std::int64_t last) {
    DropoutMask::Words words{};
    for (std::int64_t i = first; i < last; ++i) {
      const ScorePosition at = position_of(i);
      if (i % kShared == 0) words = mask.words(at);
      const double factor = mask.factor(words, at.kv_idx);
      out[i] = factor == 0 ? T{0} : in[i] * static_cast<T>(factor);
    }
  });
  return result;
}

}  // namespace

template <class T>
Variable<T> dropout(const Variable<T>& x, const heed::Dropout& dropout) {
  const FloatEnvironment environment;
  if (!(dropout.probability >= 0 && dropout.probability <= 1)) {
    throw InvalidArgument(
        fmt::format("dropout: probability is {}, expected 0 to 1", dropout.probability));
  }
  if (DropoutMask(dropout).keeps_everything()) return x;
  return record<T>("dropout", drop(x.value(), dropout), {x},
                   [dropout](Step<T>& step) { step.give(0, drop(step.grad(), dropout)); });
}

template HEED_API Variable<float> dropout(const Variable<float>&, const heed::Dropout&);
template HEED_API Variable<double> dropout(const Variable<double>&, const heed::Dropout&);

}}}  // namespace heed::v0::nn
