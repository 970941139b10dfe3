#include "heed/attention.h"

#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>

#include "bindings.h"
#include "gradients.h"
#include "heed/attention/backward.h"
#include "masks.h"
#include "operands.h"
#include "options.h"

namespace heed::python {

namespace {

constexpr const char* kAttention = "attention";

template <class T>
nb::object attention_of(const Operands& operands, const Options& options, bool with_lse,
                        std::optional<int> num_threads) {
  using Real = RealOf<T>;
  const CallOptions<Real> call(kAttention, options);
  const auto query = view_of_rank_4<T>(operands.query);
  const auto key = view_of_rank_4<T>(operands.key);
  const auto value = view_of_rank_4<T>(operands.value);
  if (!with_lse) {
    Tensor<T> out =
        without_lock(num_threads, [&] { return heed::attention(query, key, value, *call); });
    return to_object(std::move(out), operands.library, operands.rank);
  }
  auto both =
      without_lock(num_threads, [&] { return attention_with_lse(query, key, value, *call); });
  return to_objects(std::move(both), operands.library, operands.rank);
}

nb::object attention(nb::handle query, nb::handle key, nb::handle value, const Options& options,
                     bool with_lse, std::optional<int> num_threads) {
  const Operands operands = operands_of(kAttention, query, key, value);
  return with_type(operands.dtype, [&](auto number) {
    return attention_of<decltype(number)>(operands, options, with_lse, num_threads);
  });
}

// Returns (out, lse, lse_low, out_low, kept). attention_backward() takes `kept` unchanged; it is
// None if nothing is kept.
nb::object attention_for_backward(nb::handle query, nb::handle key, nb::handle value,
                                  const Options& options, std::optional<int> num_threads) {
  const Operands operands = operands_of(kAttention, query, key, value);
  return with_type(operands.dtype, [&](auto number) -> nb::object {
    using T = decltype(number);
    const CallOptions<RealOf<T>> call(kAttention, options);
    auto made = without_lock(num_threads, [&] {
      return heed::attention_for_backward(view_of_rank_4<T>(operands.query),
                                          view_of_rank_4<T>(operands.key),
                                          view_of_rank_4<T>(operands.value), *call);
    });
    const nb::object kept = made.kept.num_elements() == 0
                                ? nb::object(nb::none())
                                : to_object(std::move(made.kept), operands.library, 1);
    return to_objects(std::move(made), operands.library, operands.rank) + nb::make_tuple(kept);
  });
}

// True for tensors of one type and four dimensions that fit each other, with equal numbers of
// heads.
bool fit(const nb::dlpack::dltensor& query, const nb::dlpack::dltensor& key,
         const nb::dlpack::dltensor& value) {
  if (query.ndim != 4 || key.ndim != 4 || value.ndim != 4) return false;
  if (!(query.dtype == key.dtype && query.dtype == value.dtype)) return false;
  const std::int64_t* q = query.shape;
  const std::int64_t* k = key.shape;
  const std::int64_t* v = value.shape;
  return q[0] == k[0] && q[0] == v[0] && q[1] == k[1] && q[1] == v[1] && k[2] == v[2] &&
         q[3] == k[3];
}

template <class T>
TensorView<const T> view_of_usual(const nb::dlpack::dltensor& tensor) {
  const std::int64_t* shape = tensor.shape;
  Strides strides{};
  std::copy_n(tensor.strides, 4, strides.begin());
  const auto* bytes = static_cast<const std::byte*>(tensor.data) + tensor.byte_offset;
  return {reinterpret_cast<const T*>(bytes), {shape[0], shape[1], shape[2], shape[3]}, strides};
}

// Attention of usual PyTorch tensors that fit each other, without further checks; None for any
// others. This halves the time of a short call.
nb::object usual_attention(nb::handle query, nb::handle key, nb::handle value,
                           const Options& options, int num_threads) {
  const auto q = usual_tensor(query);
  const auto k = q ? usual_tensor(key) : q;
  const auto v = k ? usual_tensor(value) : k;
  if (!v || !fit(*q, *k, *v)) return nb::none();
  const auto type = float_type(q->dtype);
  if (!type) return nb::none();
  return with_type(*type, [&](auto number) {
    using T = decltype(number);
    const CallOptions<RealOf<T>> call(kAttention, options);
    const auto views = std::tuple(view_of_usual<T>(*q), view_of_usual<T>(*k), view_of_usual<T>(*v));
    Tensor<T> out = without_lock(num_threads, [&] {
      return std::apply([&](const auto&... view) { return heed::attention(view..., *call); },
                        views);
    });
    return to_object(std::move(out), Library::kTorch, 4);
  });
}

}  // namespace

void bind_attention(nb::module_& module) {
  module.def("attention", &attention, nb::arg("query").none(), nb::arg("key").none(),
             nb::arg("value").none(), nb::arg("options"), nb::arg("with_lse"),
             nb::arg("num_threads").none());
  module.def("attention_for_backward", &attention_for_backward, nb::arg("query").none(),
             nb::arg("key").none(), nb::arg("value").none(), nb::arg("options"),
             nb::arg("num_threads").none());
  module.def("usual_attention", &usual_attention, nb::arg("query").none(), nb::arg("key").none(),
             nb::arg("value").none(), nb::arg("options"), nb::arg("num_threads"));
}

namespace {

constexpr const char* kBackward = "attention_backward";

// The inputs and the results of attention.
struct Recorded {
  Operands operands;
  Array grad_out;
  Forward forward;
};

template <class T>
nb::object backward_of(const Recorded& recorded, const Options& options,
                       std::optional<int> num_threads) {
  using Real = RealOf<T>;
  const Operands& operands = recorded.operands;
  const CallOptions<Real> call(kBackward, options);
  const auto forward = view_of_forward<T, Real>(recorded.forward);
  auto found = without_lock(num_threads, [&] {
    return attention_backward(view_of_rank_4<T>(recorded.grad_out),
                              view_of_rank_4<T>(operands.query), view_of_rank_4<T>(operands.key),
                              view_of_rank_4<T>(operands.value), forward, *call);
  });
  return to_objects(std::move(found), operands, options);
}

nb::object backward(nb::handle grad_out, nb::handle query, nb::handle key, nb::handle value,
                    const nb::tuple& forward, const Options& options,
                    std::optional<int> num_threads) {
  const Operands operands = operands_of(kBackward, query, key, value);
  const DataType dtype = operands.dtype;
  check_derivative(kBackward, options);
  const Recorded recorded{.operands = operands,
                          .grad_out = array_of_type(kBackward, "grad_out", grad_out, dtype),
                          .forward = forward_of(kBackward, forward, dtype)};
  return with_type(dtype, [&](auto number) {
    return backward_of<decltype(number)>(recorded, options, num_threads);
  });
}

}  // namespace

void bind_backward(nb::module_& module) {
  module.def("attention_backward", &backward, nb::arg("grad_out").none(), nb::arg("query").none(),
             nb::arg("key").none(), nb::arg("value").none(), nb::arg("forward"), nb::arg("options"),
             nb::arg("num_threads").none());
}

}  // namespace heed::python
