#include "core/float_environment.h"
#include "heed/nn/ops.h"
#include "heed/nn/tape.h"
#include "nn/ops/elementwise.h"
#include "nn/ops/shapes.h"

namespace heed { inline namespace v0 { namespace nn {

namespace {

// f(a, b), with both broadcast to `shape`.
template <class T, class F>
Tensor<T> combine(TensorView<const T> a, TensorView<const T> b, const Shape& shape, F f) {
  if (a.shape() == b.shape()) return map(a, b, f);
  const TensorView<const T> left = a.broadcast_to(shape);
  const TensorView<const T> right = b.broadcast_to(shape);
  const std::int64_t x_step = left.stride(-1);
  const std::int64_t y_step = right.stride(-1);
  auto result = Tensor<T>::uninitialized(shape);
  for_each_row(shape, [&](std::int64_t row) {
    const T* x = entry_at(left, row, 1);
    const T* y = entry_at(right, row, 1);
    T* out = result.data() + row * shape[-1];
    for (std::int64_t i = 0; i < shape[-1]; ++i) out[i] = f(x[i * x_step], y[i * y_step]);
  });
  return result;
}

}  // namespace

template <class T>
Variable<T> add(const Variable<T>& a, const Variable<T>& b) {
  const FloatEnvironment environment;
  const Shape shape = broadcast_shapes("add", a.shape(), b.shape());
  return record<T>("add", combine(a.value(), b.value(), shape, [](T x, T y) { return x + y; }),
                   {a, b}, [of_a = a.shape(), of_b = b.shape()](Step<T>& step) {
                     if (step.wants(0)) step.give(0, reduce_to(step.grad(), of_a));
                     if (step.wants(1)) step.give(1, reduce_to(step.grad(), of_b));
                   });
}

template <class T>
Variable<T> sub(const Variable<T>& a, const Variable<T>& b) {
  const FloatEnvironment environment;
  const Shape shape = broadcast_shapes("sub", a.shape(), b.shape());
  return record<T>("sub", combine(a.value(), b.value(), shape, [](T x, T y) { return x - y; }),
                   {a, b}, [of_a = a.shape(), of_b = b.shape()](Step<T>& step) {
                     if (step.wants(0)) step.give(0, reduce_to(step.grad(), of_a));
                     if (!step.wants(1)) return;
                     const Tensor<T> minus = map(step.grad(), [](T grad) { return -grad; });
                     step.give(1, reduce_to(minus.view(), of_b));
                   });
}

template <class T>
Variable<T> mul(const Variable<T>& a, const Variable<T>& b) {
  const FloatEnvironment environment;
  const Shape shape = broadcast_shapes("mul", a.shape(), b.shape());
  const auto product = [](T x, T y) { return x * y; };
  return record<T>("mul", combine(a.value(), b.value(), shape, product), {a, b},
                   [a = Saved(a), b = Saved(b), shape, product](Step<T>& step) {
                     const auto pass = [&](std::size_t input, const Saved<T>& self,
                                           const Saved<T>& other) {
                       if (!step.wants(input)) return;
                       const Tensor<T> grad = combine(step.grad(), other.view(), shape, product);
                       step.give(input, reduce_to(grad.view(), self.shape()));
                     };
                     pass(0, a, b);
                     pass(1, b, a);
                   });
}

template <class T>
Variable<T> scale(const Variable<T>& x, double factor) {
  const FloatEnvironment environment;
  const auto scaled = [by = static_cast<T>(factor)](T element) { return by * element; };
  return record<T>("scale", map(x.value(), scaled), {x},
                   [scaled](Step<T>& step) { step.give(0, map(step.grad(), scaled)); });
}

template HEED_API Variable<float> add(const Variable<float>&, const Variable<float>&);
template HEED_API Variable<float> sub(const Variable<float>&, const Variable<float>&);
template HEED_API Variable<float> mul(const Variable<float>&, const Variable<float>&);
template HEED_API Variable<float> scale(const Variable<float>&, double);
template HEED_API Variable<double> add(const Variable<double>&, const Variable<double>&);
template HEED_API Variable<double> sub(const Variable<double>&, const Variable<double>&);
template HEED_API Variable<double> mul(const Variable<double>&, const Variable<double>&);
template HEED_API Variable<double> scale(const Variable<double>&, double);

template <class T>
Variable<T> sum(const Variable<T>& x) {
  const FloatEnvironment environment;
  return record<T>("sum", reduce_to(x.value(), Shape{}), {x}, [of_x = x.shape()](Step<T>& step) {
    step.give(0, contiguous(step.grad().broadcast_to(of_x)));
  });
}

template <class T>
Variable<T> mean(const Variable<T>& x) {
  const FloatEnvironment environment;
  if (x.num_elements() == 0) throw InvalidArgument("mean: x has no elements");
  return scale(sum(x), 1 / static_cast<double>(x.num_elements()));
}

template HEED_API Variable<float> sum(const Variable<float>&);
template HEED_API Variable<double> sum(const Variable<double>&);
template HEED_API Variable<float> mean(const Variable<float>&);
template HEED_API Variable<double> mean(const Variable<double>&);

}}}  // namespace heed::v0::nn
