// The backward pass of linear attention: states in forward order by chunks, gradients from the last
// token to the first.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "attention/reference/arithmetic.h"
#include "attention/request/linear_attention.h"
#include "attention/request/request.h"
#include "core/float_environment.h"
#include "heed/core/cancellation.h"
#include "heed/core/elementary.h"
#include "heed/core/parallel.h"

namespace heed { inline namespace v0 { namespace recurrent { namespace {

// The number of tokens between states that are kept; those in between are computed again.
constexpr std::int64_t kChunk = 32;

// to += factor · from
template <class Real>
void add(Real* to, Real factor, const Real* from, std::int64_t length) {
  for (std::int64_t i = 0; i < length; ++i) to[i] += factor * from[i];
}

template <class T>
T* row(const TensorView<T>& view, std::int64_t batch, std::int64_t head, std::int64_t t) {
  return view.data() + batch * view.stride(0) + head * view.stride(1) + t * view.stride(2);
}

// The gradients, with the shapes that tokens use.
template <class Real>
struct Sums {
  TensorView<Real> query, key, value, state;
  std::optional<TensorView<Real>> decay;  // broadcast to [batch, num_kv_heads, length, head_dim]
  std::optional<TensorView<Real>> beta;   // broadcast to [batch, num_kv_heads, length]
};

// The backward pass of one state of one batch entry.
template <class Real>
class HeadBackward {
 public:
  HeadBackward(const Problem<Real>& problem, TensorView<const Real> grad_out,
               const Sums<Real>& sums, std::int64_t batch, std::int64_t kv_head)
      : in_(problem),
        grad_out_(grad_out),
        sums_(sums),
        batch_(batch),
        kv_head_(kv_head),
        size_(static_cast<std::size_t>(problem.head_dim * problem.value_dim)),
        written_(static_cast<std::size_t>(problem.value_dim)),
        difference_(written_),
        grad_written_(written_),
        forgotten_(size_),
        grad_state_(size_) {}

  void run(const std::optional<TensorView<const Real>>& grad_state) {
    std::vector<Real> state(size_);
    if (in_.initial_state) copy_state(*in_.initial_state, state);
    if (grad_state) copy_state(*grad_state, grad_state_);
    std::vector<std::vector<Real>> kept;
    for (std::int64_t t = 0; t < in_.length; ++t) {
      if (t % kChunk == 0) kept.push_back(state);
      update(t, state.data());
    }
    std::vector<std::vector<Real>> states(kChunk + 1, std::vector<Real>(size_));
    for (std::int64_t first = (in_.length - 1) / kChunk * kChunk; first >= 0 && !kept.empty();
         first -= kChunk) {
      states.front() = kept.back();
      kept.pop_back();
      const std::int64_t end = std::min(first + kChunk, in_.length);
      for (std::int64_t t = first; t < end; ++t) {
        auto& after = states[static_cast<std::size_t>(t - first + 1)];
        after = states[static_cast<std::size_t>(t - first)];
        update(t, after.data());
      }
      for (std::int64_t t = end - 1; t >= first; --t) {
        read_backward(t, states[static_cast<std::size_t>(t - first + 1)].data());
        write_backward(t, states[static_cast<std::size_t>(t - first)]);
      }
    }
    for (std::int64_t i = 0; i < in_.head_dim; ++i) {
      std::copy_n(grad_row(i), in_.value_dim, row(sums_.state, batch_, kv_head_, i));
    }
  }

 private:
  Real* grad_row(std::int64_t i) { return grad_state_.data() + i * in_.value_dim; }
  const Real* key(std::int64_t t) const { return row(in_.key, batch_, in_.key_head(kv_head_), t); }
  Real beta(std::int64_t t) const { return (*in_.beta)(batch_, kv_head_, t); }
  Real gate(std::int64_t t, std::int64_t i) const {
    return elementary::exp((*in_.decay)(batch_, kv_head_, t, i));
  }

  void copy_state(TensorView<const Real> from, std::vector<Real>& to) const {
    for (std::int64_t i = 0; i < in_.head_dim; ++i) {
      std::copy_n(row(from, batch_, kv_head_, i), in_.value_dim, to.data() + i * in_.value_dim);
    }
  }

  void forget(std::int64_t t, Real* state) const {
    for (std::int64_t i = 0; in_.decay && i < in_.head_dim; ++i) {
      const Real kept = gate(t, i);
      for (std::int64_t j = 0; j < in_.value_dim; ++j) state[i * in_.value_dim + j] *= kept;
    }
  }

  // Computes what token t adds to the state after forgetting: written_, and v − Sᵀk before it is
  // multiplied by β.
  void find_written(std::int64_t t, const Real* state) {
    const Real* value = row(in_.value, batch_, kv_head_, t);
    std::copy_n(value, in_.value_dim, difference_.data());
    for (std::int64_t i = 0; in_.beta && i < in_.head_dim; ++i) {
      add(difference_.data(), -key(t)[i], state + i * in_.value_dim, in_.value_dim);
    }
    const Real factor = in_.beta ? beta(t) : Real{1};
    for (std::size_t j = 0; j < written_.size(); ++j) written_[j] = factor * difference_[j];
  }

  void update(std::int64_t t, Real* state) {
    check_cancelled();
    forget(t, state);
    find_written(t, state);
    for (std::int64_t i = 0; i < in_.head_dim; ++i) {
      add(state + i * in_.value_dim, key(t)[i], written_.data(), in_.value_dim);
    }
  }

  // The backward pass of out = scale · Sᵀq.
  void read_backward(std::int64_t t, const Real* state) {
    for (std::int64_t g = 0; g < in_.heads_per_kv_head; ++g) {
      const std::int64_t head = kv_head_ * in_.heads_per_kv_head + g;
      const Real* query = row(in_.query, batch_, in_.query_head(head), t);
      const Real* grad_out = row(grad_out_, batch_, head, t);
      Real* grad_query = row(sums_.query, batch_, in_.query_head(head), t);
      for (std::int64_t i = 0; i < in_.head_dim; ++i) {
        grad_query[i] += in_.scale * dot(state + i * in_.value_dim, grad_out, in_.value_dim);
        add(grad_row(i), in_.scale * query[i], grad_out, in_.value_dim);
      }
    }
  }

  // The backward pass of the write of token t, and of the decay before it.
  void write_backward(std::int64_t t, const std::vector<Real>& before) {
    forgotten_ = before;
    const Real* state = forgotten_.data();
    forget(t, forgotten_.data());
    find_written(t, state);
    Real* grad_key = row(sums_.key, batch_, in_.key_head(kv_head_), t);
    std::fill(grad_written_.begin(), grad_written_.end(), Real{0});
    for (std::int64_t i = 0; i < in_.head_dim; ++i) {
      add(grad_written_.data(), key(t)[i], grad_row(i), in_.value_dim);
      grad_key[i] += dot(grad_row(i), written_.data(), in_.value_dim);
    }
    if (in_.beta) difference_backward(t, state, grad_key);
    std::copy(grad_written_.begin(), grad_written_.end(), row(sums_.value, batch_, kv_head_, t));
    if (in_.decay) forget_backward(t, state);
  }

  // The backward pass of written = β (v − Sᵀk): turns grad_written_ into the gradient of v.
  void difference_backward(std::int64_t t, const Real* state, Real* grad_key) {
    const Real factor = beta(t);
    (*sums_.beta)(batch_, kv_head_, t) +=
        dot(grad_written_.data(), difference_.data(), in_.value_dim);
    for (Real& grad : grad_written_) grad *= factor;
    for (std::int64_t i = 0; i < in_.head_dim; ++i) {
      grad_key[i] -= dot(state + i * in_.value_dim, grad_written_.data(), in_.value_dim);
      add(grad_row(i), -key(t)[i], grad_written_.data(), in_.value_dim);
    }
  }

  void forget_backward(std::int64_t t, const Real* forgotten) {
    for (std::int64_t i = 0; i < in_.head_dim; ++i) {
      (*sums_.decay)(batch_, kv_head_, t, i) +=
          dot(grad_row(i), forgotten + i * in_.value_dim, in_.value_dim);
      const Real kept = gate(t, i);
      for (std::int64_t j = 0; j < in_.value_dim; ++j) grad_row(i)[j] *= kept;
    }
  }

  const Problem<Real>& in_;
  TensorView<const Real> grad_out_;
  const Sums<Real>& sums_;
  std::int64_t batch_;
  std::int64_t kv_head_;
  std::size_t size_;
  std::vector<Real> written_;
  std::vector<Real> difference_;
  std::vector<Real> grad_written_;
  std::vector<Real> forgotten_;
  std::vector<Real> grad_state_;
};

// True if batch entries or heads share an element.
template <class T>
bool is_shared(const std::optional<TensorView<T>>& view) {
  return view && ((view->extent(0) > 1 && view->stride(0) == 0) ||
                  (view->extent(1) > 1 && view->stride(1) == 0));
}

template <class Real>
LinearAttentionGradients<Real> backward(const LinearAttentionLoss<Real>& loss,
                                        TensorView<const Real> query, TensorView<const Real> key,
                                        TensorView<const Real> value,
                                        const BasicLinearAttentionOptions<Real>& options) {
  const FloatEnvironment environment;
  constexpr const char* kFunction = "linear_attention_backward";
  const Sizes sizes = check_sizes(kFunction, query, key, value);
  const Problem<Real> problem{sizes, check_terms(kFunction, sizes, options), query, key, value};
  check_tensor(kFunction, "grad_out", loss.grad_out, sizes.out());
  if (loss.grad_state) check_tensor(kFunction, "grad_state", *loss.grad_state, sizes.state());

  LinearAttentionGradients<Real> gradients{
      Tensor<Real>(query.shape()),
      Tensor<Real>(key.shape()),
      Tensor<Real>(value.shape()),
      options.decay ? Tensor<Real>(options.decay->shape()) : Tensor<Real>(),
      options.beta ? Tensor<Real>(options.beta->shape()) : Tensor<Real>(),
      Tensor<Real>(sizes.state())};
  Sums<Real> sums{gradients.query, gradients.key, gradients.value, gradients.state, {}, {}};
  if (problem.decay) sums.decay = gradients.decay.view().broadcast_to(problem.decay->shape());
  if (problem.beta) sums.beta = gradients.beta.view().broadcast_to(problem.beta->shape());

  // States that share a key or a query add to its gradient one after the other.
  const std::int64_t heads = sizes.batch * sizes.num_kv_heads;
  const std::int64_t together = std::lcm(sizes.states_per_key, sizes.states_per_query);
  const bool in_order = is_shared(sums.decay) || is_shared(sums.beta);
  parallel_for(0, heads / together, in_order ? std::max<std::int64_t>(heads, 1) : 1,
               [&](std::int64_t first, std::int64_t last) {
                 for (std::int64_t i = first * together; i < last * together; ++i) {
                   HeadBackward<Real>(problem, loss.grad_out, sums, i / sizes.num_kv_heads,
                                      i % sizes.num_kv_heads)
                       .run(loss.grad_state);
                 }
               });
  return gradients;
}

}  // namespace

}}}  // namespace heed::v0::recurrent

namespace heed { inline namespace v0 {

LinearAttentionGradients<float> linear_attention_backward(const LinearAttentionLoss<float>& loss,
                                                          FloatView query, FloatView key,
                                                          FloatView value,
                                                          const LinearAttentionOptions& options) {
  return recurrent::backward<float>(loss, query, key, value, options);
}

LinearAttentionGradients<double> linear_attention_backward(
    const LinearAttentionLoss<double>& loss, DoubleView query, DoubleView key, DoubleView value,
    const LinearAttentionOptions64& options) {
  return recurrent::backward<double>(loss, query, key, value, options);
}

}}  // namespace heed::v0
