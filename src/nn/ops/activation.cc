#include "heed/core/dual.h"
#include "heed/nn/ops.h"
#include "nn/ops/elementwise.h"

namespace heed { inline namespace v0 { namespace nn {

namespace {

// A function whose derivative is `slope` of the function's value.
template <class T, class F, class Slope>
Variable<T> through_value(const char* name, const Variable<T>& x, F f, Slope slope) {
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

}}}  // namespace heed::v0::nn
