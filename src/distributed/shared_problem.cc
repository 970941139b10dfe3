#include "distributed/shared_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <string>

#include "attention/query_offsets.h"
#include "distributed/own_queries.h"
#include "distributed/segment_work.h"
#include "heed/half.h"

namespace heed::inline v0::distributed {

namespace {

// What every rank has to have alike, as text: everything but the numbers in tensors.
template <class Real>
std::string description(const AttentionShapes& shapes, const BasicAttentionOptions<Real>& options) {
  std::string text = fmt::format(
      "query [{}, {}, …, {}] {}, key [{}, {}, …, {}] {}, value [{}, {}, …, {}] {}", shapes.batch,
      shapes.num_heads, shapes.head_dim, to_string(shapes.dtype), shapes.batch, shapes.num_kv_heads,
      shapes.head_dim, to_string(shapes.type_of_keys()), shapes.batch, shapes.num_kv_heads,
      shapes.value_dim, to_string(shapes.type_of_values()));
  const auto add = [&](const char* name, const std::string& what) {
    text += fmt::format(", {} {}", name, what);
  };
  const auto add_tensor = [&](const char* name, const std::optional<TensorView<const Real>>& view) {
    if (view) add(name, to_string(view->shape()));
  };
  add("mask", options.mask.description());
  if (options.score_mod) add("score_mod", "given");
  add_tensor("alibi_slopes", options.alibi_slopes);
  add_tensor("bias", options.bias);
  if (options.relative_bias) add("relative_bias", to_string(options.relative_bias->table.shape()));
  if (options.relative_vectors) {
    add_tensor("relative_vectors.key", options.relative_vectors->key);
    add_tensor("relative_vectors.value", options.relative_vectors->value);
  }
  add_tensor("sinks", options.sinks);
  if (options.scale) add("scale", fmt::format("{}", *options.scale));
  if (options.softcap != 0) add("softcap", fmt::format("{}", options.softcap));
  if (options.dropout.probability != 0) {
    add("dropout", fmt::format("{}, seed {}", options.dropout.probability, options.dropout.seed));
  }
  if (!is_zero(options.query_offset)) add("query_offset", to_string(options.query_offset));
  return text;
}

void check_alike(const char* function, Communicator& ranks, const std::string& mine) {
  const std::vector<std::string> all = gather_texts(ranks, mine);
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    throw InvalidArgument(
        fmt::format("{}: rank {} has {}, but rank 0 has {}", function, rank, all[rank], all[0]));
  }
}

// How many tokens there are of all ranks together, of which each has those that are its own.
TokenDivision divide(const char* function, Communicator& ranks, const char* name,
                     std::int64_t own) {
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(ranks.size()));
  ranks.gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(lengths)));
  const TokenDivision division(std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}),
                               ranks.size());
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const std::int64_t found = lengths[static_cast<std::size_t>(rank)];
    if (found == division.num_tokens(rank)) continue;
    throw InvalidArgument(fmt::format("{}: rank {} has {} of {} {}, expected {}", function, rank,
                                      found, division.length(), name, division.num_tokens(rank)));
  }
  return division;
}

template <class Real>
Readers find_readers(Communicator& ranks, const Request<Real>& request, const TokenDivision& keys) {
  std::vector<std::uint8_t> mine;
  run_on_all(ranks, [&] {
    for (const double pairs : pairs_by_segment(request)) mine.push_back(pairs > 0 ? 1 : 0);
  });
  std::vector<std::uint8_t> all(mine.size() * static_cast<std::size_t>(ranks.size()));
  ranks.gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  return {keys.num_segments(), std::move(all)};
}

}  // namespace

template <class Q, class K>
SharedProblem<Computed<Q>> share_problem(const char* function, Communicator& ranks,
                                         TensorView<const Q> query, TensorView<const K> key,
                                         TensorView<const K> value,
                                         const BasicAttentionOptions<Computed<Q>>& options,
                                         Cancellation* cancellation) {
  using Real = Computed<Q>;
  AttentionShapes shapes;
  run_on_all(ranks, [&] { shapes = check_shapes(function, query, key, value); });
  check_alike(function, ranks, description(shapes, options));
  const TokenDivision queries = divide(function, ranks, "queries", shapes.q_len);
  const TokenDivision keys = divide(function, ranks, "keys", shapes.kv_len);
  shapes.q_len = queries.length();
  shapes.kv_len = keys.length();
  // Segments are sent without gaps.
  shapes.key_stride = shapes.value_stride = 0;
  std::optional<Request<Real>> request;
  run_on_all(ranks, [&] { request = check_request(function, shapes, options); });
  request->part = own_queries(queries, keys, ranks.rank(), ranks.size());
  Readers readers = find_readers(ranks, *request, keys);
  SharedProblem<Real> problem{
      ranks,          std::move(*request), keys,        rows_of(query), rows_of(key),
      rows_of(value), std::move(readers),  cancellation};
  run_on_all(ranks, [&] {
    const std::string refusal = make_plan(problem.request, Pass::kForward).reason;
    if (refusal.empty()) return;
    throw InvalidArgument(
        fmt::format("{}: {}, and plain loops do not divide tokens", function, refusal));
  });
  return problem;
}

template <class Real>
Plan<Real> plan_for(const SharedProblem<Real>& problem, Pass pass, std::int64_t num_keys) {
  return make_plan(problem.with_keys({0, std::min(num_keys, problem.keys.length())}), pass);
}

template SharedProblem<float> share_problem(const char*, Communicator&, TensorView<const float>,
                                            TensorView<const float>, TensorView<const float>,
                                            const BasicAttentionOptions<float>&, Cancellation*);
template SharedProblem<float> share_problem(const char*, Communicator&, TensorView<const Float16>,
                                            TensorView<const Float16>, TensorView<const Float16>,
                                            const BasicAttentionOptions<float>&, Cancellation*);
template SharedProblem<float> share_problem(const char*, Communicator&, TensorView<const BFloat16>,
                                            TensorView<const BFloat16>, TensorView<const BFloat16>,
                                            const BasicAttentionOptions<float>&, Cancellation*);
template SharedProblem<float> share_problem(const char*, Communicator&, TensorView<const float>,
                                            TensorView<const Float16>, TensorView<const Float16>,
                                            const BasicAttentionOptions<float>&, Cancellation*);
template SharedProblem<float> share_problem(const char*, Communicator&, TensorView<const float>,
                                            TensorView<const BFloat16>, TensorView<const BFloat16>,
                                            const BasicAttentionOptions<float>&, Cancellation*);
template SharedProblem<double> share_problem(const char*, Communicator&, TensorView<const double>,
                                             TensorView<const double>, TensorView<const double>,
                                             const BasicAttentionOptions<double>&, Cancellation*);
template Plan<float> plan_for(const SharedProblem<float>&, Pass, std::int64_t);
template Plan<double> plan_for(const SharedProblem<double>&, Pass, std::int64_t);

}  // namespace heed::inline v0::distributed
