#include "distributed/shared_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "attention/engine/row_tiles.h"
#include "attention/masks/query_offsets.h"
#include "distributed/agreement.h"
#include "distributed/choice.h"
#include "heed/core/data_type.h"
#include "heed/distributed/attention.h"

namespace heed { inline namespace v0 { namespace distributed {

namespace {

constexpr std::int64_t kSegment = TokenDivision::kSegment;

// Adds `rows` rows, each with all keys of the tiles, to the pairs of their segments.
void add_run(const engine::TileRun& run, std::int64_t rows, std::vector<double>& pairs) {
  for (std::int64_t begin = run.begin; begin < run.end;) {
    const std::int64_t segment = begin / kSegment;
    const std::int64_t end = std::min<std::int64_t>((segment + 1) * kSegment, run.end);
    pairs[static_cast<std::size_t>(segment)] += static_cast<double>(rows * (end - begin));
    begin = end;
  }
}

}  // namespace

template <class Real>
std::vector<double> pairs_by_segment(const Request<Real>& request) {
  std::vector<double> pairs(
      static_cast<std::size_t>((request.shape.kv_len + kSegment - 1) / kSegment));
  engine::RowTiles<Real> rows(request);
  const std::int64_t heads = engine::different_heads(request, request.num_heads());
  const std::int64_t alike = heads == 0 ? 0 : request.num_heads() / heads;
  const std::int64_t stretch = request.part->stretch;
  for (std::int64_t b = 0; b < request.shape.batch; ++b) {
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t q = 0; q < request.num_queries();) {
        // Only adjacent queries: otherwise keys between them would seem to be read.
        const std::int64_t end = std::min(
            {request.num_queries(), (q / stretch + 1) * stretch, q + kernels::kMaxPanelWidth});
        rows.clear(b);
        for (std::int64_t i = q; i < end; ++i) rows.add(h, i);
        for (const engine::TileRun& run : rows.find()) add_run(run, (end - q) * alike, pairs);
        q = end;
      }
    }
  }
  return pairs;
}

template std::vector<double> pairs_by_segment(const Request<float>&);
template std::vector<double> pairs_by_segment(const Request<double>&);

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
