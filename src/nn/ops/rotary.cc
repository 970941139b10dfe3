#include "heed/rotary.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "heed/nn/ops.h"
#include "heed/nn/tape.h"
#include "nn/ops/heads.h"
#include "nn/ops/shapes.h"

namespace heed::inline v0::nn {

namespace {

using Positions = Tensor<std::int64_t>;

template <class T>
void check_rotary(const Heads<T>& x, const Variable<T>& cos, const Variable<T>& sin,
                  const RotaryOptions& options) {
  check_heads("rotary_embedding", "x", x);
  if (options.num_heads) {
    throw InvalidArgument(fmt::format(
        "rotary_embedding: num_heads is {}, expected none: the heads say it", *options.num_heads));
  }
  if (!cos.requires_grad() && !sin.requires_grad()) return;
  throw InvalidArgument("rotary_embedding: cos or sin requires a gradient, but none reaches them");
}

// Of positions of its own.
struct OwnedOptions {
  explicit OwnedOptions(const RotaryOptions& given) : options(given) {
    if (given.position_ids) position_ids = to_tensor(*given.position_ids);
  }
  RotaryOptions bound() const {
    RotaryOptions result = options;
    if (position_ids) result.position_ids = position_ids->view();
    return result;
  }

  RotaryOptions options;
  std::optional<Positions> position_ids;
};

}  // namespace

template <class T>
Heads<T> rotary_embedding(const Heads<T>& x, const Variable<T>& cos, const Variable<T>& sin,
                          const RotaryOptions& options) {
  check_rotary(x, cos, sin, options);
  const bool are_columns = x.source.rank() == 3;
  OwnedOptions owned(options);
  if (are_columns) owned.options.num_heads = x.columns.num_heads;
  const TensorView<const T> given =
      are_columns ? columns_in(x.source.value(), x.columns) : x.source.value();
  Tensor<T> turned = heed::rotary_embedding(given, cos.value(), sin.value(), owned.bound());
  HeadColumns columns = x.columns;
  columns.first = 0;
  return {record<T>("rotary_embedding", std::move(turned), {x.source},
                    [at = x.columns, shape = x.source.shape(), owned = std::move(owned),
                     cos = Saved(cos), sin = Saved(sin)](Step<T>& step) {
                      Tensor<T> grad = rotary_embedding_backward(step.grad(), cos.view(),
                                                                 sin.view(), owned.bound());
                      if (grad.shape() == shape) return step.give(0, std::move(grad));
                      add_into(columns_in(step.sum_for(0), at), std::as_const(grad).view());
                    }),
          columns};
}

template HEED_API Heads<float> rotary_embedding(const Heads<float>&, const Variable<float>&,
                                                const Variable<float>&, const RotaryOptions&);
template HEED_API Heads<double> rotary_embedding(const Heads<double>&, const Variable<double>&,
                                                 const Variable<double>&, const RotaryOptions&);

}  // namespace heed::inline v0::nn
