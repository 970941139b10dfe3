#include "heed/attention/rotary.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "core/float_environment.h"
#include "heed/nn/ops.h"
#include "heed/nn/tape.h"
#include "nn/ops/heads.h"
#include "nn/ops/shapes.h"

namespace heed { inline namespace v0 { namespace nn {

namespace {

using Positions = Tensor<std::int64_t>;

// The recorded operation: options with their own copy of the positions, and constant caches.
template <class T>
struct Turn {
  Turn(const Variable<T>& cos_cache, const Variable<T>& sin_cache, RotaryPairing pairs,
       const RotaryOptions& given)
      : cos(cos_cache), sin(sin_cache), pairing(pairs), options(given) {
    if (cos_cache.requires_grad() || sin_cache.requires_grad()) {
      throw InvalidArgument(
          "rotary_embedding: cos or sin requires a gradient, but none reaches them");
    }
    if (given.position_ids) position_ids = to_tensor(*given.position_ids);
  }

  Tensor<T> forward(TensorView<const T> x) const {
    return heed::rotary_embedding(x, cos.view(), sin.view(), pairing, bound());
  }
  Tensor<T> backward(TensorView<const T> grad) const {
    return rotary_embedding_backward(grad, cos.view(), sin.view(), pairing, bound());
  }

  RotaryOptions bound() const {
    RotaryOptions result = options;
    if (position_ids) result.position_ids = position_ids->view();
    return result;
  }

  Saved<T> cos;
  Saved<T> sin;
  RotaryPairing pairing;
  RotaryOptions options;
  std::optional<Positions> position_ids;
};

}  // namespace

template <class T>
Variable<T> rotary_embedding(const Variable<T>& x, const Variable<T>& cos, const Variable<T>& sin,
                             RotaryPairing pairing, const RotaryOptions& options) {
  const FloatEnvironment environment;
  Turn<T> turn(cos, sin, pairing, options);
  Tensor<T> turned = turn.forward(x.value());
  return record<T>(
      "rotary_embedding", std::move(turned), {x},
      [turn = std::move(turn)](Step<T>& step) { step.give(0, turn.backward(step.grad())); });
}

template <class T>
Heads<T> rotary_embedding(const Heads<T>& x, const Variable<T>& cos, const Variable<T>& sin,
                          RotaryPairing pairing, const RotaryOptions& options) {
  const FloatEnvironment environment;
  check_heads("rotary_embedding", "x", x);
  if (options.num_heads) {
    throw InvalidArgument(fmt::format(
        "rotary_embedding: num_heads is {}, expected none: the heads say it", *options.num_heads));
  }
  HeadColumns columns = x.columns;
  columns.first = 0;
  if (x.source.rank() == 4) {
    return {rotary_embedding(x.source, cos, sin, pairing, options), columns};
  }
  Turn<T> turn(cos, sin, pairing, options);
  turn.options.num_heads = columns.num_heads;
  Tensor<T> turned = turn.forward(columns_in(x.source.value(), x.columns));
  return {
      record<T>("rotary_embedding", std::move(turned), {x.source},
                [at = x.columns, shape = x.source.shape(), turn = std::move(turn)](Step<T>& step) {
                  Tensor<T> grad = turn.backward(step.grad());
                  if (grad.shape() == shape) return step.give(0, std::move(grad));
                  add_into(columns_in(step.sum_for(0), at), std::as_const(grad).view());
                }),
      columns};
}

template HEED_API Variable<float> rotary_embedding(const Variable<float>&, const Variable<float>&,
                                                   const Variable<float>&, RotaryPairing,
                                                   const RotaryOptions&);
template HEED_API Variable<double> rotary_embedding(const Variable<double>&,
                                                    const Variable<double>&,
                                                    const Variable<double>&, RotaryPairing,
                                                    const RotaryOptions&);
template HEED_API Heads<float> rotary_embedding(const Heads<float>&, const Variable<float>&,
                                                const Variable<float>&, RotaryPairing,
                                                const RotaryOptions&);
template HEED_API Heads<double> rotary_embedding(const Heads<double>&, const Variable<double>&,
                                                 const Variable<double>&, RotaryPairing,
                                                 const RotaryOptions&);

}}}  // namespace heed::v0::nn
