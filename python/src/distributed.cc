// Attention over tokens that are divided among ranks.
#include <nanobind/stl/optional.h>

#include <initializer_list>
#include <optional>
#include <utility>
#include <variant>

#include "bindings.h"
#include "gradients.h"
#include "heed/core/parallel.h"
#include "heed/distributed/attention.h"
#include "operands.h"
#include "options.h"
#include "ranks.h"

namespace heed::python {

namespace {

constexpr const char* kDividedAttention = "distributed::attention";
constexpr const char* kDividedBackward = "distributed::attention_backward";
constexpr const char* kGatherTokens = "gather_tokens";

// The settings of a call, apart from its operands.
struct Caller {
  const Ranks& ranks;
  const Options& options;
  std::optional<int> num_threads;
};

// The inputs of a rank. If one rank cannot read its inputs, all ranks raise an error; after that
// nothing fails on one rank alone.
class DividedCall {
 public:
  DividedCall(const char* function, const Caller& caller)
      : function_(function), caller_(caller), ranks_(caller.ranks.get()) {}

  // Reads the operands and then the other inputs with read_more(), on all ranks.
  template <class ReadMore>
  void read(nb::handle query, nb::handle key, nb::handle value, const ReadMore& read_more) {
    on_all(ranks_, [&] {
      operands_ = operands_of(function_, query, key, value);
      if (operands_.dtype == DataType::kFloat64) {
        options_.emplace<CallOptions<double>>(function_, caller_.options);
      } else {
        options_.emplace<CallOptions<float>>(function_, caller_.options);
      }
      check_extents({operands_.query, operands_.key, operands_.value});
      if (caller_.num_threads) const ThreadLimit limit(*caller_.num_threads);
      read_more();
    });
  }

  // Throws unless each array can be viewed.
  static void check_extents(std::initializer_list<Array> arrays) {
    for (const Array& array : arrays) view_of_rank_4<char>(array);
  }

  const Operands& operands() const { return operands_; }
  distributed::Ranks divided() const { return caller_.ranks.divided(); }
  template <class Real>
  const BasicAttentionOptions<Real>& options() const {
    return *std::get<CallOptions<Real>>(options_);
  }
  template <class Compute>
  auto compute(const Compute& compute) const {
    return without_lock(caller_.num_threads, compute);
  }

 private:
  const char* function_;
  const Caller& caller_;
  Communicator& ranks_;
  Operands operands_{};
  std::variant<std::monostate, CallOptions<float>, CallOptions<double>> options_;
};

template <class T>
nb::object divided_attention_of(const DividedCall& call, bool with_lse) {
  const Operands& operands = call.operands();
  const auto& options = call.options<RealOf<T>>();
  const auto query = view_of_rank_4<T>(operands.query);
  const auto key = view_of_rank_4<T>(operands.key);
  const auto value = view_of_rank_4<T>(operands.value);
  if (!with_lse) {
    Tensor<T> out = call.compute(
        [&] { return distributed::attention(call.divided(), query, key, value, options); });
    return to_object(std::move(out), operands.library, operands.rank);
  }
  auto both = call.compute(
      [&] { return distributed::attention_with_lse(call.divided(), query, key, value, options); });
  return to_objects(std::move(both), operands.library, operands.rank);
}

nb::object divided_attention(const Ranks& ranks, nb::handle query, nb::handle key, nb::handle value,
                             const Options& options, bool with_lse,
                             std::optional<int> num_threads) {
  const Caller caller{ranks, options, num_threads};
  DividedCall call(kDividedAttention, caller);
  call.read(query, key, value, [] {});
  return with_type(call.operands().dtype, [&](auto number) {
    return divided_attention_of<decltype(number)>(call, with_lse);
  });
}

template <class T>
nb::object divided_backward_of(const DividedCall& call, const Array& grad_out, const Forward& made,
                               const Options& options) {
  using Real = RealOf<T>;
  const Operands& operands = call.operands();
  const auto forward = view_of_forward<T, Real>(made);
  auto found = call.compute([&] {
    return distributed::attention_backward(
        call.divided(), view_of_rank_4<T>(grad_out), view_of_rank_4<T>(operands.query),
        view_of_rank_4<T>(operands.key), view_of_rank_4<T>(operands.value), forward,
        call.options<Real>());
  });
  return to_objects(std::move(found), operands, options);
}

nb::object divided_backward(const Ranks& ranks, nb::handle grad_out, nb::handle query,
                            nb::handle key, nb::handle value, const nb::tuple& forward,
                            const Options& options, std::optional<int> num_threads) {
  const Caller caller{ranks, options, num_threads};
  DividedCall call(kDividedBackward, caller);
  Array gradient;
  Forward made;
  call.read(query, key, value, [&] {
    check_derivative(kDividedBackward, options);
    const DataType dtype = call.operands().dtype;
    gradient = array_of_type(kDividedBackward, "grad_out", grad_out, dtype);
    made = forward_of(kDividedBackward, forward, dtype);
    DividedCall::check_extents({gradient, made.out, made.lse});
    if (made.lse_low) DividedCall::check_extents({*made.lse_low});
    if (made.out_low) DividedCall::check_extents({*made.out_low});
  });
  return with_type(call.operands().dtype, [&](auto number) {
    return divided_backward_of<decltype(number)>(call, gradient, made, options);
  });
}

nb::object gather_tokens(const Ranks& ranks, nb::handle own) {
  Communicator& all = ranks.get();
  Array array;
  on_all(all, [&] {
    array = to_array(kGatherTokens, "own", own);
    data_type_of(kGatherTokens, "own", array);
    DividedCall::check_extents({array});
  });
  const DataType dtype = data_type_of(kGatherTokens, "own", array);
  return with_type(dtype, [&](auto number) -> nb::object {
    using T = decltype(number);
    Tensor<T> whole =
        without_lock([&] { return distributed::gather_tokens(all, view_of<T>(array)); });
    return to_object(std::move(whole), library_of(own));
  });
}

}  // namespace

void bind_distributed(nb::module_& module) {
  module.def("distributed_attention", &divided_attention, nb::arg("ranks"), nb::arg("query").none(),
             nb::arg("key").none(), nb::arg("value").none(), nb::arg("options"),
             nb::arg("with_lse"), nb::arg("num_threads").none());
  module.def("distributed_attention_backward", &divided_backward, nb::arg("ranks"),
             nb::arg("grad_out").none(), nb::arg("query").none(), nb::arg("key").none(),
             nb::arg("value").none(), nb::arg("forward"), nb::arg("options"),
             nb::arg("num_threads").none());
  module.def("gather_tokens", &gather_tokens, nb::arg("ranks"), nb::arg("own").none());
}

}  // namespace heed::python
