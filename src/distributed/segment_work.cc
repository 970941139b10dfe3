#include "distributed/segment_work.h"

#include <algorithm>
#include <cstdint>

#include "attention/engine/row_tiles.h"
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

}}}  // namespace heed::v0::distributed
