#include "distributed/shared_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "attention/masks/query_offsets.h"
#include "distributed/agreement.h"
#include "distributed/choice.h"
#include "distributed/own_scores.h"
#include "distributed/segment_work.h"
#include "heed/core/data_type.h"

namespace heed { inline namespace v0 { namespace distributed {

namespace {

// Text of everything that must be equal on every rank: all but the numbers in tensors.
template <class Real>
std::string description(const Request<Real>& request, const Dropout& dropout) {
  const AttentionShapes& shapes = request.shape;
  std::string text = fmt::format(
      "query [{}, {}, {}, {}] {}, key [{}, {}, {}, {}] {}, value [{}, {}, {}, {}] {}, mask {}, "
      "scores {}, scale {}",
      shapes.batch, shapes.num_heads, shapes.q_len, shapes.head_dim, to_string(shapes.dtype),
      shapes.batch, shapes.num_kv_heads, shapes.kv_len, shapes.head_dim,
      to_string(shapes.type_of_keys()), shapes.batch, shapes.num_kv_heads, shapes.kv_len,
      shapes.value_dim, to_string(shapes.type_of_values()), request.mask.description(),
      request.terms.description(), request.scale);
  if (request.sinks) text += ", sinks";
  if (request.precision == Precision::kExact) text += ", exact";
  if (dropout.probability != 0) {
    text += fmt::format(", dropout {}, seed {}", dropout.probability, dropout.seed);
  }
  if (!is_zero(request.scores().query_offset)) {
    text += fmt::format(", query_offset {}", to_string(request.scores().query_offset));
  }
  return text;
}

template <class Real>
Readers find_readers(Communicator& ranks, const Request<Real>& request, const TokenDivision& keys) {
  std::vector<std::uint8_t> mine;
  run_on_all(ranks, [&] {
    for (const double pairs : pairs_by_segment(request)) mine.push_back(pairs > 0 ? 1 : 0);
  });
  return {keys.num_segments(), gather_all<std::uint8_t>(ranks, mine)};
}

}  // namespace

template <class Q, class K>
SharedProblem<Computed<Q>> share_problem(const char* function, const Ranks& divided,
                                         TensorView<const Q> query, TensorView<const K> key,
                                         TensorView<const K> value,
                                         const BasicAttentionOptions<Computed<Q>>& options,
                                         Cancellation* cancellation) {
  using Real = Computed<Q>;
  Communicator& ranks = divided.communicator;
  AttentionShapes shapes;
  run_on_all(ranks, [&] { shapes = check_shapes(function, query, key, value); });
  const TokenDivision queries = divide_tokens(function, ranks, "queries", shapes.q_len);
  const TokenDivision keys = divide_tokens(function, ranks, "keys", shapes.kv_len);
  shapes.q_len = queries.length();
  shapes.kv_len = keys.length();
  // Messages have no gaps.
  shapes.key_stride = shapes.value_stride = 0;
  std::optional<Request<Real>> request;
  run_on_all(ranks, [&] { request = check_request(function, shapes, options); });
  check_alike(function, ranks,
              fmt::format("{}, divided by {}", description(*request, options.dropout),
                          to_string(divided.divided_by)));
  request->part = own_queries(shapes, ranks.rank(), ranks.size());
  Readers readers = find_readers(ranks, *request, keys);
  const DividedBy by =
      choose_division(function, shapes, ranks.size(), readers, divided.divided_by).by;
  if (by == DividedBy::kHeads) request->part = own_heads(shapes, ranks.rank(), ranks.size());
  SharedProblem<Real> problem{ranks,
                              by,
                              std::move(*request),
                              queries,
                              keys,
                              rows_of(query),
                              rows_of(key),
                              rows_of(value),
                              std::move(readers),
                              cancellation};
  run_on_all(ranks, [&] {
    std::string refusal;
    prepare(problem.request, Pass::kForward, &refusal);
    if (refusal.empty()) return;
    throw InvalidArgument(
        fmt::format("{}: {}, and plain loops do not divide attention", function, refusal));
  });
  return problem;
}

template <class Real>
PreparedPass<Real> prepare_for(const SharedProblem<Real>& problem, Pass pass,
                               std::int64_t num_keys) {
  return prepare(problem.with_keys({0, std::min(num_keys, problem.keys.length())}), pass);
}

template SharedProblem<float> share_problem(const char*, const Ranks&, TensorView<const float>,
                                            TensorView<const float>, TensorView<const float>,
                                            const BasicAttentionOptions<float>&, Cancellation*);
template SharedProblem<float> share_problem(const char*, const Ranks&, TensorView<const Float16>,
                                            TensorView<const Float16>, TensorView<const Float16>,
                                            const BasicAttentionOptions<float>&, Cancellation*);
template SharedProblem<float> share_problem(const char*, const Ranks&, TensorView<const BFloat16>,
                                            TensorView<const BFloat16>, TensorView<const BFloat16>,
                                            const BasicAttentionOptions<float>&, Cancellation*);
template SharedProblem<float> share_problem(const char*, const Ranks&, TensorView<const float>,
                                            TensorView<const Float16>, TensorView<const Float16>,
                                            const BasicAttentionOptions<float>&, Cancellation*);
template SharedProblem<float> share_problem(const char*, const Ranks&, TensorView<const float>,
                                            TensorView<const BFloat16>, TensorView<const BFloat16>,
                                            const BasicAttentionOptions<float>&, Cancellation*);
template SharedProblem<double> share_problem(const char*, const Ranks&, TensorView<const double>,
                                             TensorView<const double>, TensorView<const double>,
                                             const BasicAttentionOptions<double>&, Cancellation*);
template PreparedPass<float> prepare_for(const SharedProblem<float>&, Pass, std::int64_t);
template PreparedPass<double> prepare_for(const SharedProblem<double>&, Pass, std::int64_t);

}}}  // namespace heed::v0::distributed
