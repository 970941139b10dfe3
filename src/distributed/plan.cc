// Who computes and who sends how much, and how long that would take.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <ostream>
#include <vector>

#include "attention/request.h"
#include "distributed/own_queries.h"
#include "distributed/segment_exchange.h"
#include "distributed/segment_work.h"
#include "heed/distributed_plan.h"

namespace heed::inline v0::distributed {

namespace {

constexpr const char* kPlan = "distributed::plan";

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

bool reads(const DivisionPlan& plan, int rank, std::int64_t segment) {
  return plan.pairs[index(rank)][index(segment)] > 0;
}

// The bytes of a segment, the last of which may be shorter.
double bytes_of(const DivisionPlan& plan, std::int64_t segment) {
  const RowRange tokens = plan.keys.tokens(segment);
  return static_cast<double>(plan.segment_bytes) * static_cast<double>(tokens.end - tokens.begin) /
         static_cast<double>(TokenDivision::kSegment);
}

// When every rank has ended its steps.
class Timeline {
 public:
  Timeline(const DivisionPlan& plan, const Cluster& cluster)
      : plan_(plan),
        cluster_(cluster),
        end_(index(plan.size)),
        before_(index(plan.size)),
        link_free_(index(plan.size)) {}

  double run() {
    for (std::int64_t j = 0; j < plan_.keys.num_segments(); ++j) step(j);
    return *std::max_element(end_.begin(), end_.end());
  }

 private:
  void step(std::int64_t j) {
    const double arrival = arrival_of(j);
    for (int rank = 0; rank < plan_.size; ++rank) {
      const std::size_t r = index(rank);
      const double start = reads(plan_, rank, j) && rank != plan_.keys.owner(j)
                               ? std::max(end_[r], arrival)
                               : end_[r];
      before_[r] = end_[r];
      end_[r] = start + plan_.pairs[r][index(j)] / cluster_.pairs_per_second;
    }
  }

  // before_ has the ends of step j − 2 as long as step j is not made.
  double arrival_of(std::int64_t j) {
    const int owner = plan_.keys.owner(j);
    double sent = std::max(before_[index(owner)], link_free_[index(owner)]);
    bool is_read = false;
    for (int rank = 0; rank < plan_.size; ++rank) {
      if (rank == owner || !reads(plan_, rank, j)) continue;
      is_read = true;
      sent = std::max(sent, before_[index(rank)]);
    }
    if (!is_read) return 0;
    const auto hops = std::bit_width(static_cast<unsigned>(plan_.size - 1));
    const double seconds = bytes_of(plan_, j) / cluster_.bytes_per_second;
    link_free_[index(owner)] = sent + seconds;
    return sent + hops * cluster_.latency_seconds + seconds;
  }

  const DivisionPlan& plan_;
  const Cluster& cluster_;
  std::vector<double> end_;     // of the last step
  std::vector<double> before_;  // of the one before it
  std::vector<double> link_free_;
};

}  // namespace

double DivisionPlan::pairs_of(int rank) const {
  const std::vector<double>& own = pairs[index(rank)];
  return std::accumulate(own.begin(), own.end(), 0.0);
}

double DivisionPlan::balance() const {
  double sum = 0;
  double most = 0;
  for (int rank = 0; rank < size; ++rank) {
    sum += pairs_of(rank);
    most = std::max(most, pairs_of(rank));
  }
  return most == 0 ? 1 : sum / size / most;
}

std::int64_t DivisionPlan::bytes_received(int rank) const {
  double bytes = 0;
  for (std::int64_t j = 0; j < keys.num_segments(); ++j) {
    if (keys.owner(j) != rank && reads(*this, rank, j)) bytes += bytes_of(*this, j);
  }
  return static_cast<std::int64_t>(bytes);
}

std::int64_t DivisionPlan::most_bytes_received() const {
  std::int64_t most = 0;
  for (int rank = 0; rank < size; ++rank) most = std::max(most, bytes_received(rank));
  return most;
}

DivisionPlan plan(const AttentionShapes& shapes, int size, const AttentionOptions& options) {
  Request<float> request = check_request(kPlan, shapes, options);
  DivisionPlan plan{TokenDivision(shapes.q_len, size),
                    TokenDivision(shapes.kv_len, size),
                    size,
                    TokenBytes::of(shapes).of_tokens(TokenDivision::kSegment),
                    {}};
  for (int rank = 0; rank < size; ++rank) {
    request.part = own_queries(plan.queries, plan.keys, rank, size);
    plan.pairs.push_back(pairs_by_segment(request));
  }
  return plan;
}

std::ostream& operator<<(std::ostream& out, const DivisionPlan& plan) {
  std::int64_t bytes = 0;
  for (int rank = 0; rank < plan.size; ++rank) bytes += plan.bytes_received(rank);
  out << fmt::format("ranks       {}, {} queries and {} keys in segments of {}\n", plan.size,
                     plan.queries.length(), plan.keys.length(), TokenDivision::kSegment)
      << fmt::format("balance     {:.1f} % of the busiest rank's work on average\n",
                     100 * plan.balance())
      << fmt::format("sent        {:.1f} MB, {:.1f} MB a segment\n",
                     static_cast<double>(bytes) / 1e6,
                     static_cast<double>(plan.segment_bytes) / 1e6);
  for (int rank = 0; rank < plan.size; ++rank) {
    out << fmt::format("rank {:<6} {:.4g} pairs, receives {:.1f} MB\n", rank, plan.pairs_of(rank),
                       static_cast<double>(plan.bytes_received(rank)) / 1e6);
  }
  return out;
}

double simulated_seconds(const DivisionPlan& plan, const Cluster& cluster) {
  return Timeline(plan, cluster).run();
}

}  // namespace heed::inline v0::distributed
