#include <cstdint>
#include <optional>
#include <string>

#include "attention/request/gradient_tensors.h"
#include "distributed/agreement.h"
#include "distributed/head_tensor.h"
#include "distributed/passes.h"

namespace heed { inline namespace v0 { namespace distributed {

namespace {

// Views one number per row as rows of length 1.
template <class T>
auto rows_of_numbers(const TensorView<T>& view) {
  const Shape& shape = view.shape();
  return rows_of(TensorView<T>(view.data(), {shape[0], shape[1], shape[2], 1},
                               {view.stride(0), view.stride(1), view.stride(2), 1}));
}

// False for a tensor that is not wanted or not known; it is empty.
template <class T>
bool is_there(const TensorView<T>& view) {
  return view.rank() == 3;
}

// Query, key and value of this rank's heads.
template <class Real>
struct HeadOperands {
  HeadTensor query;
  HeadTensor key;
  HeadTensor value;

  explicit HeadOperands(const SharedProblem<Real>& problem)
      : query(like_query(problem, problem.request.head_dim(), problem.request.shape.dtype)),
        key(like_key(problem, problem.request.head_dim(), problem.request.shape.type_of_keys())),
        value(like_key(problem, problem.request.value_dim(),
                       problem.request.shape.type_of_values())) {}

  void fetch(const SharedProblem<Real>& problem) {
    query.fetch(problem.query);
    key.fetch(problem.key);
    value.fetch(problem.value);
  }
  void aim(const SharedProblem<Real>& problem, Call<Real>& call) const {
    call.request = &problem.request;
    call.query = query.rows();
    call.key = key.rows();
    call.value = value.rows();
    call.batches = {0, problem.batch()};
  }

  static HeadTensor like_query(const SharedProblem<Real>& problem, std::int64_t dim,
                               DataType type) {
    return {
        problem.ranks, problem.queries, {problem.batch(), problem.request.num_heads(), dim, type}};
  }
  static HeadTensor like_key(const SharedProblem<Real>& problem, std::int64_t dim, DataType type) {
    return {
        problem.ranks, problem.keys, {problem.batch(), problem.request.num_kv_heads(), dim, type}};
  }
};

template <class Real>
struct HeadResults {
  HeadTensor out;
  std::optional<HeadTensor> lse;
  std::optional<HeadTensor> lse_low;
  std::optional<HeadTensor> out_low;

  HeadResults(const SharedProblem<Real>& problem, DataType type, bool has_lse, bool has_low)
      : out(HeadOperands<Real>::like_query(problem, problem.request.value_dim(), type)) {
    const auto numbers = [&] {
      return HeadOperands<Real>::like_query(problem, 1, data_type_of<Real>());
    };
    if (has_lse) lse.emplace(numbers());
    if (has_low) lse_low.emplace(numbers());
  }

  void add_low_of_out(const SharedProblem<Real>& problem) {
    const std::int64_t dim = problem.request.value_dim();
    out_low.emplace(HeadOperands<Real>::like_query(problem, dim, out.rows().type));
  }

  TensorView<Real> lse_numbers() const { return numbers(lse); }
  TensorView<Real> low_numbers() const { return numbers(lse_low); }

 private:
  static TensorView<Real> numbers(const std::optional<HeadTensor>& tensor) {
    return tensor ? tensor->template numbers<Real>() : TensorView<Real>();
  }
};

// Gradients of this rank's heads, of type Real except that of the output.
template <class Real>
struct HeadGradients {
  HeadTensor out;
  HeadTensor query;
  HeadTensor key;
  HeadTensor value;

  HeadGradients(const SharedProblem<Real>& problem, DataType type_of_out)
      : out(HeadOperands<Real>::like_query(problem, problem.request.value_dim(), type_of_out)),
        query(HeadOperands<Real>::like_query(problem, problem.request.head_dim(), kReal)),
        key(HeadOperands<Real>::like_key(problem, problem.request.head_dim(), kReal)),
        value(HeadOperands<Real>::like_key(problem, problem.request.value_dim(), kReal)) {}

 private:
  static constexpr DataType kReal = data_type_of<Real>();
};

// Throws on all ranks unless they have the same tensors: they would wait for each other's.
template <class View>
void check_lse_alike(const char* function, Communicator& ranks, const View& lse, const View& low) {
  check_alike(function, ranks,
              std::string(is_there(lse) ? "lse" : "no lse") + " and " +
                  (is_there(low) ? "lse_low" : "no lse_low"));
}

}  // namespace

template <class Real>
void forward_by_heads(const SharedProblem<Real>& problem, const Results<Real>& results) {
  check_lse_alike("distributed::attention", problem.ranks, results.lse, results.lse_low);
  std::optional<HeadOperands<Real>> in;
  std::optional<HeadResults<Real>> made;
  run_on_all(problem.ranks, [&] {
    in.emplace(problem);
    made.emplace(problem, results.out.type, is_there(results.lse), is_there(results.lse_low));
    if (results.out_low) made->add_low_of_out(problem);
  });
  in->fetch(problem);
  run_on_all(problem.ranks, [&] {
    const CancellationScope scope(problem.cancellation);
    ForwardCall<Real> call;
    in->aim(problem, call);
    call.out = made->out.target();
    call.lse = made->lse_numbers();
    call.lse_low = made->low_numbers();
    if (made->out_low) call.out_low = made->out_low->target();
    prepare_for(problem, Pass::kForward, problem.keys.length())->forward({&call, 1});
  });
  made->out.give(results.out);
  if (made->lse) made->lse->give(rows_of_numbers(results.lse));
  if (made->lse_low) made->lse_low->give(rows_of_numbers(results.lse_low));
  if (made->out_low) made->out_low->give(*results.out_low);
}

template <class Real>
AttentionGradients<Real> backward_by_heads(const SharedProblem<Real>& problem,
                                           const BackwardInputs<Real>& inputs) {
  check_lse_alike("distributed::attention_backward", problem.ranks, inputs.lse, inputs.lse_low);
  std::optional<HeadOperands<Real>> in;
  std::optional<HeadResults<Real>> forward;
  std::optional<HeadGradients<Real>> of_heads;
  AttentionGradients<Real> gradients;
  run_on_all(problem.ranks, [&] {
    in.emplace(problem);
    forward.emplace(problem, inputs.out.type, true, is_there(inputs.lse_low));
    of_heads.emplace(problem, inputs.grad_out.type);
    gradients = make_own_gradients(problem);
  });
  in->fetch(problem);
  of_heads->out.fetch(inputs.grad_out);
  forward->out.fetch(inputs.out);
  forward->lse->fetch(rows_of_numbers(inputs.lse));
  if (forward->lse_low) forward->lse_low->fetch(rows_of_numbers(inputs.lse_low));
  run_on_all(problem.ranks, [&] {
    const CancellationScope scope(problem.cancellation);
    BackwardCall<Real> call;
    in->aim(problem, call);
    call.grad_out = of_heads->out.rows();
    call.out = forward->out.rows();
    call.lse = forward->lse_numbers();
    call.lse_low = forward->low_numbers();
    call.gradients.query = of_heads->query.target();
    call.gradients.key = of_heads->key.target();
    call.gradients.value = of_heads->value.target();
    aim_at_options<Real>(problem.request, gradients, call.gradients);
    prepare_for(problem, Pass::kBackward, problem.keys.length())->backward({&call, 1});
  });
  of_heads->query.give(rows_of(gradients.query.view()));
  of_heads->key.give(rows_of(gradients.key.view()));
  of_heads->value.give(rows_of(gradients.value.view()));
  sum_options<Real>(problem, gradients);
  return gradients;
}

template void forward_by_heads(const SharedProblem<float>&, const Results<float>&);
template void forward_by_heads(const SharedProblem<double>&, const Results<double>&);
template AttentionGradients<float> backward_by_heads(const SharedProblem<float>&,
                                                     const BackwardInputs<float>&);
template AttentionGradients<double> backward_by_heads(const SharedProblem<double>&,
                                                      const BackwardInputs<double>&);

}}}  // namespace heed::v0::distributed
