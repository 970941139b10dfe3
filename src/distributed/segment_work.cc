#include "distributed/segment_work.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "attention/engine/tile_map.h"
#include "heed/distributed.h"

namespace heed::inline v0::distributed {

namespace {

constexpr std::int64_t kSegment = TokenDivision::kSegment;

// Looks at rows of one head, some neighbours at a time.
template <class Real>
class SegmentWork {
 public:
  explicit SegmentWork(const Request<Real>& request)
      : request_(request),
        runs_(static_cast<std::size_t>(std::max<std::int64_t>(
            1, engine::TileMap::capacity(!request.mask.is_structural(), request.shape.kv_len)))),
        pairs_(static_cast<std::size_t>((request.shape.kv_len + kSegment - 1) / kSegment)) {}

  std::vector<double> take() && {
    const ScoreShape& shape = request_.shape;
    const bool heads_differ = request_.mask.depends_on_head() || !request_.mask.is_structural();
    const std::int64_t heads = std::min(shape.num_heads, heads_differ ? shape.num_heads : 1);
    for (std::int64_t b = 0; b < shape.batch; ++b) {
      for (std::int64_t h = 0; h < heads; ++h) {
        for (std::int64_t q = 0; q < request_.num_queries();) q = add_rows(b, h, q);
      }
    }
    const std::int64_t alike = heads == 0 ? 0 : shape.num_heads / heads;
    for (double& pairs : pairs_) pairs *= static_cast<double>(alike);
    return std::move(pairs_);
  }

 private:
  // Adds rows from q on that are neighbours; returns the first one that is not.
  std::int64_t add_rows(std::int64_t batch, std::int64_t head, std::int64_t q) {
    const std::int64_t stretch = request_.part->stretch;
    const std::int64_t end = std::min(
        {request_.num_queries(), (q / stretch + 1) * stretch, q + kernels::kMaxPanelWidth});
    std::array<std::int32_t, kernels::kMaxPanelWidth> heads;
    std::array<std::int32_t, kernels::kMaxPanelWidth> positions;
    heads.fill(static_cast<std::int32_t>(head));
    RowRange keys{request_.shape.kv_len, 0};
    for (std::int64_t i = q; i < end; ++i) {
      const std::int64_t query = request_.query(i);
      positions[static_cast<std::size_t>(i - q)] =
          static_cast<std::int32_t>(query + request_.shape.query_offset[batch]);
      const RowRange seen = request_.mask.range({batch, head, query});
      if (seen.begin >= seen.end) continue;
      keys = {std::min(keys.begin, seen.begin), std::max(keys.end, seen.end)};
    }
    engine::TileMap tiles(runs_.data());
    tiles.find(request_.mask,
               {static_cast<std::int32_t>(batch), static_cast<std::int32_t>(end - q), heads.data(),
                positions.data()},
               keys);
    for (const engine::TileRun& run : tiles.runs()) add_run(run, end - q);
    return end;
  }

  void add_run(const engine::TileRun& run, std::int64_t rows) {
    for (std::int64_t begin = run.begin; begin < run.end;) {
      const std::int64_t segment = begin / kSegment;
      const std::int64_t end = std::min<std::int64_t>((segment + 1) * kSegment, run.end);
      pairs_[static_cast<std::size_t>(segment)] += static_cast<double>(rows * (end - begin));
      begin = end;
    }
  }

  const Request<Real>& request_;
  std::vector<engine::TileRun> runs_;
  std::vector<double> pairs_;
};

}  // namespace

template <class Real>
std::vector<double> pairs_by_segment(const Request<Real>& request) {
  return SegmentWork<Real>(request).take();
}

template std::vector<double> pairs_by_segment(const Request<float>&);
template std::vector<double> pairs_by_segment(const Request<double>&);

}  // namespace heed::inline v0::distributed
