// The work and the messages of each rank, and an estimate of the time.
#include "heed/distributed/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "attention/request/request.h"
#include "distributed/choice.h"
#include "distributed/shared_problem.h"

namespace heed { inline namespace v0 { namespace distributed {

namespace {

constexpr const char* kPlan = "distributed::plan";

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

bool reads(const DivisionPlan& plan, int rank, std::int64_t segment) {
  return plan.pairs[index(rank)][index(segment)] > 0;
}

// The bytes of a segment; the last segment may be shorter.
double bytes_of(const DivisionPlan& plan, std::int64_t segment) {
  const RowRange tokens = plan.keys.tokens(segment);
  return static_cast<double>(plan.segment_bytes) * static_cast<double>(tokens.end - tokens.begin) /
         static_cast<double>(TokenDivision::kSegment);
}

// The pairs of query and key of every rank, given its part of all scores.
template <class PartOf>
std::vector<std::vector<double>> pairs_of_ranks(Request<float> request, int size,
                                                const PartOf& part_of) {
  std::vector<std::vector<double>> pairs;
  for (int rank = 0; rank < size; ++rank) {
    request.part = part_of(request.shape, rank, size);
    pairs.push_back(pairs_by_segment(request));
  }
  return pairs;
}

Readers readers_of(const std::vector<std::vector<double>>& pairs, std::int64_t num_segments) {
  std::vector<std::uint8_t> reads;
  for (const auto& of_rank : pairs) {
    for (const double some : of_rank) reads.push_back(some > 0 ? 1 : 0);
  }
  return {num_segments, std::move(reads)};
}

// Computes when every rank has ended its steps.
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

  // At this point before_ holds the ends of step j − 2.
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

// Seconds of a division by heads: nothing is computed during messages.
double seconds_by_heads(const DivisionPlan& plan, const Cluster& cluster) {
  double most = 0;
  for (int rank = 0; rank < plan.size; ++rank) most = std::max(most, plan.pairs_of(rank));
  return 2 * (plan.size - 1) * cluster.latency_seconds +
         static_cast<double>(plan.most_bytes_received()) / cluster.bytes_per_second +
         most / cluster.pairs_per_second;
}

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

std::int64_t DivisionPlan::most_bytes_received() const {
  return *std::max_element(received.begin(), received.end());
}

DivisionPlan plan(const AttentionShapes& shapes, int size, const AttentionOptions& options,
                  DividedBy by) {
  const Request<float> request = check_request(kPlan, shapes, options);
  DivisionPlan plan{.queries = TokenDivision(shapes.q_len, size),
                    .keys = TokenDivision(shapes.kv_len, size),
                    .size = size,
                    .divided_by = by,
                    .reason = {},
                    .segment_bytes = TokenBytes::of(shapes).of_tokens(TokenDivision::kSegment),
                    .pairs = pairs_of_ranks(request, size, own_queries),
                    .received = {}};
  const Readers readers = readers_of(plan.pairs, plan.keys.num_segments());
  Choice choice = choose_division(kPlan, shapes, size, readers, by);
  plan.divided_by = choice.by;
  plan.reason = std::move(choice.reason);
  if (plan.divided_by == DividedBy::kHeads) {
    plan.pairs = pairs_of_ranks(request, size, own_heads);
    plan.received = bytes_by_heads(shapes, size);
  } else {
    plan.received = bytes_by_tokens(shapes, size, readers);
  }
  return plan;
}

std::ostream& operator<<(std::ostream& out, const DivisionPlan& plan) {
  const auto megabytes = [](std::int64_t bytes) { return static_cast<double>(bytes) / 1e6; };
  out << fmt::format("ranks       {}, {} queries and {} keys in segments of {}\n", plan.size,
                     plan.queries.length(), plan.keys.length(), TokenDivision::kSegment)
      << fmt::format("divided by  {}: {}\n", to_string(plan.divided_by), plan.reason)
      << fmt::format("balance     {:.1f} % of the busiest rank's work on average\n",
                     100 * plan.balance())
      << fmt::format("sent        {:.1f} MB\n",
                     megabytes(std::accumulate(plan.received.begin(), plan.received.end(),
                                               std::int64_t{0})));
  for (int rank = 0; rank < plan.size; ++rank) {
    out << fmt::format("rank {:<6} {:.4g} pairs, receives {:.1f} MB\n", rank, plan.pairs_of(rank),
                       megabytes(plan.received[index(rank)]));
  }
  return out;
}

double simulated_seconds(const DivisionPlan& plan, const Cluster& cluster) {
  if (plan.divided_by == DividedBy::kHeads) return seconds_by_heads(plan, cluster);
  return Timeline(plan, cluster).run();
}

}}}  // namespace heed::v0::distributed
