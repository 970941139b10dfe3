#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "attention/engine/exact_rows.h"
#include "attention/kernels/target.h"
#include "attention/keys/segment_keys.h"
#include "attention/request/gradient_tensors.h"
#include "distributed/agreement.h"
#include "distributed/gradient_return.h"
#include "distributed/passes.h"
#include "distributed/segment_exchange.h"

namespace heed { inline namespace v0 { namespace distributed {

namespace {

template <class Real>
void add(const Tensor<Real>& from, Tensor<Real>& to) {
  std::transform(from.data(), from.data() + from.num_elements(), to.data(), to.data(),
                 [](Real added, Real sum) { return sum + added; });
}

// Zeros for the gradients of those options that one call sums for each head.
template <class Real>
OptionGradients<Real> sums_per_head(const Request<Real>& request) {
  OptionGradients<Real> gradients;
  for (const auto& term : request.terms) {
    if (term->gradient() == nullptr || term->sums_per_head() == 0) continue;
    gradients.*term->gradient() = Tensor<Real>(term->gradient_shape());
  }
  if (request.sinks) gradients.sinks = Tensor<Real>(request.sinks->shape());
  return gradients;
}

// For each batch entry, 1 if the lse of some row is too imprecise to restore its weights: that row
// takes two passes over all keys.
template <class Real>
std::vector<std::uint8_t> lost_entries(const SharedProblem<Real>& problem,
                                       const TensorView<const Real>& lse) {
  std::vector<std::uint8_t> lost;
  for (std::int64_t b = 0; b < problem.batch(); ++b) {
    bool is_lost = false;
    for_each_element(lse.select(0, b),
                     [&](const Real& one) { is_lost = is_lost || engine::is_lost_lse(one); });
    lost.push_back(is_lost ? 1 : 0);
  }
  return lost;
}

// Returns the batch entries that are not left out, as ranges.
std::vector<RowRange> ranges_without(const std::vector<bool>& left_out) {
  std::vector<RowRange> ranges;
  for (std::size_t i = 0; i < left_out.size(); ++i) {
    if (left_out[i]) continue;
    const auto b = static_cast<std::int64_t>(i);
    if (ranges.empty() || ranges.back().end != b) ranges.push_back({b, b});
    ranges.back().end = b + 1;
  }
  return ranges;
}

// The gradient sums of this rank.
template <class Real>
class OwnGradients {
 public:
  OwnGradients(const SharedProblem<Real>& problem, const BackwardInputs<Real>& inputs)
      : problem_(problem), inputs_(inputs), sums_(make_own_gradients(problem)) {
    of_call_ = Tensor<Real>(sums_.query.shape());
  }

  KeyGradients own_keys() { return {rows_of(sums_.key.view()), rows_of(sums_.value.view())}; }

  // Adds the gradients that queries and options get from these keys, for a batch range, and writes
  // the gradients of the keys, which are 0 before.
  void add_keys(const Prepared<Real>& pass, RowRange keys, const Call<Real>& where,
                const KeyGradients& gradients) {
    const Request<Real> request = problem_.with_keys(keys);
    OptionGradients<Real> per_head = sums_per_head(request);
    BackwardCall<Real> call{where, inputs_.grad_out, inputs_.out, inputs_.lse, {}, inputs_.lse_low};
    call.request = &request;
    call.query = problem_.query;
    call.gradients.query = rows_of(of_call_.view());
    call.gradients.key = gradients.key;
    call.gradients.value = gradients.value;
    aim_at_options(request, per_head, call.gradients);
    GradientTargets<Real> whole;
    aim_at_options(request, sums_, whole);
    call.gradients.cells = whole.cells;
    pass.backward({&call, 1});
    add_entries(call.batches);
    for (const auto& term : request.terms) {
      if (term->gradient() == nullptr || term->sums_per_head() == 0) continue;
      add(per_head.*term->gradient(), sums_.*term->gradient());
    }
    add(per_head.sinks, sums_.sinks);
  }

  OptionGradients<Real>& options() { return sums_; }
  AttentionGradients<Real> take() && { return std::move(sums_); }

 private:
  // Adds the gradients of the queries of some batch entries.
  void add_entries(RowRange batches) {
    if (of_call_.empty()) return;
    const std::int64_t entry = of_call_.num_elements() / problem_.batch();
    for (std::int64_t i = batches.begin * entry; i < batches.end * entry; ++i) {
      sums_.query.data()[i] += of_call_.data()[i];
    }
  }

  const SharedProblem<Real>& problem_;
  const BackwardInputs<Real>& inputs_;
  AttentionGradients<Real> sums_;
  Tensor<Real> of_call_;  // the part of the queries' gradients that comes from the keys of one call
};

// Adds the gradients of batch entries whose rows read keys once, segment after segment.
template <class Real>
void add_segments(const SharedProblem<Real>& problem, const std::vector<bool>& lost,
                  OwnGradients<Real>& own_gradients) {
  const std::vector<RowRange> batches = ranges_without(lost);
  if (batches.empty()) return;
  std::optional<SegmentExchange> exchange;
  std::optional<GradientReturn<Real>> home;
  PreparedPass<Real> pass;
  run_on_all(problem.ranks, [&] {
    exchange.emplace(problem);
    home.emplace(problem, own_gradients.own_keys(), problem.batch(), false);
    pass = prepare_for(problem, Pass::kBackward, TokenDivision::kSegment);
  });
  const auto add_keys = [&](RowRange keys, const KeyRows& rows, const KeyGradients& gradients) {
    const SegmentKeys<Real> source(
        {kernels::kernels_in<Real>(*kernels_in_use()), problem.request.shape, rows.key, rows.value},
        keys.begin);
    for (const RowRange& some : batches) {
      Call<Real> where;
      where.batches = some;
      where.keys = &source;
      own_gradients.add_keys(*pass, keys, where, gradients);
    }
  };
  run_on_all(problem.ranks, [&] {
    OwnPart own(problem.cancellation);
    exchange->for_each_segment([&](std::int64_t j, const KeyRows* rows) {
      if (rows != nullptr) {
        const KeyGradients gradients = home->start(j);
        own.run([&] { add_keys(problem.keys.tokens(j), *rows, gradients); });
        home->send(j);
      } else if (j == 0) {
        own.run([&] { add_keys({0, 0}, {}, {}); });  // for the gradients of sinks
      }
      if (j > 0) home->collect(j - 1);
    });
    if (problem.keys.num_segments() > 0) home->collect(problem.keys.num_segments() - 1);
    home->finish();
    own.finish();
  });
}

// Adds the gradients of a batch entry with rows that read all keys twice. All ranks call it.
template <class Real>
void add_from_all_keys(const SharedProblem<Real>& problem, std::int64_t batch,
                       OwnGradients<Real>& own_gradients) {
  const GatheredKeys keys(problem, batch);
  const ScoreShape& shape = problem.request.scores();
  Tensor<Real> key;
  Tensor<Real> value;
  std::optional<GradientReturn<Real>> home;
  run_on_all(problem.ranks, [&] {
    const std::int64_t heads = problem.request.num_kv_heads();
    key = Tensor<Real>({1, heads, shape.kv_len, problem.request.head_dim()});
    value = Tensor<Real>({1, heads, shape.kv_len, problem.request.value_dim()});
    KeyGradients own = own_gradients.own_keys();
    own.key.data += batch * own.key.batch_stride;
    own.value.data += batch * own.value.batch_stride;
    home.emplace(problem, own, 1, true);
    KeyGradients gradients{rows_of(key.view()), rows_of(value.view())};
    gradients.key.batch_stride = gradients.value.batch_stride = 0;
    const CancellationScope scope(problem.cancellation);
    Call<Real> where;
    where.key = keys.rows().key;
    where.value = keys.rows().value;
    where.batches = {batch, batch + 1};
    own_gradients.add_keys(*prepare_for(problem, Pass::kBackward, problem.keys.length()),
                           problem.all_keys(), where, gradients);
  });
  run_on_all(problem.ranks, [&] {
    for (std::int64_t j = 0; j < problem.keys.num_segments(); ++j) {
      const RowRange tokens = problem.keys.tokens(j);
      const KeyGradients gradients = home->start(j);
      const auto copy = [&](const Tensor<Real>& from, const MutableRows& to) {
        auto* next = reinterpret_cast<Real*>(to.data);
        for_each_element(from.view().slice(2, tokens.begin, tokens.end),
                         [&next](const Real& number) { *next++ = number; });
      };
      copy(key, gradients.key);
      copy(value, gradients.value);
      home->send(j);
      home->collect(j);
    }
    home->finish();
  });
}

}  // namespace

template <class Real>
AttentionGradients<Real> backward(const SharedProblem<Real>& problem,
                                  const BackwardInputs<Real>& inputs) {
  if (problem.divided_by == DividedBy::kHeads) return backward_by_heads(problem, inputs);
  std::optional<OwnGradients<Real>> gradients;
  run_on_all(problem.ranks, [&] { gradients.emplace(problem, inputs); });
  const std::vector<bool> lost = any_rank_says(problem.ranks, lost_entries(problem, inputs.lse));
  add_segments(problem, lost, *gradients);
  for (std::int64_t b = 0; b < problem.batch(); ++b) {
    if (lost[static_cast<std::size_t>(b)]) add_from_all_keys(problem, b, *gradients);
  }
  sum_options<Real>(problem, gradients->options());
  return std::move(*gradients).take();
}

template AttentionGradients<float> backward(const SharedProblem<float>&,
                                            const BackwardInputs<float>&);
template AttentionGradients<double> backward(const SharedProblem<double>&,
                                             const BackwardInputs<double>&);

}}}  // namespace heed::v0::distributed
