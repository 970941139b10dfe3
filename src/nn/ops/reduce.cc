#include "heed/nn/ops.h"
#include "heed/nn/tape.h"
#include "nn/ops/shapes.h"

namespace heed { inline namespace v0 { namespace nn {

template <class T>
Variable<T> sum(const Variable<T>& x) {
  return record<T>("sum", reduce_to(x.value(), Shape{}), {x}, [of_x = x.shape()](Step<T>& step) {
    step.give(0, contiguous(step.grad().broadcast_to(of_x)));
  });
}

template <class T>
Variable<T> mean(const Variable<T>& x) {
  if (x.num_elements() == 0) throw InvalidArgument("mean: x has no elements");
  return scale(sum(x), 1 / static_cast<double>(x.num_elements()));
}

template HEED_API Variable<float> sum(const Variable<float>&);
template HEED_API Variable<double> sum(const Variable<double>&);
template HEED_API Variable<float> mean(const Variable<float>&);
template HEED_API Variable<double> mean(const Variable<double>&);

}}}  // namespace heed::v0::nn
