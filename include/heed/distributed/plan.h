/// What attention over divided tokens will take, before there is a second machine.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "heed/attention.h"
#include "heed/attention/plan.h"
#include "heed/core/config.h"
#include "heed/distributed/attention.h"

namespace heed { inline namespace v0 { namespace distributed {

/// How the work of one call falls on ranks.
struct HEED_API DivisionPlan {
  TokenDivision queries;
  TokenDivision keys;
  int size;                    ///< how many ranks there are
  DividedBy divided_by;        ///< kTokens or kHeads
  std::string reason;          ///< why
  std::int64_t segment_bytes;  ///< keys and values of a whole segment, as they are sent
  /// [rank][segment]: pairs of a query and a key of the segment that the rank computes, over its
  /// heads and all batch entries: all pairs of the tiles of which some query sees a key.
  std::vector<std::vector<double>> pairs;
  std::vector<std::int64_t> received;  ///< bytes that each rank gets from others

  double pairs_of(int rank) const;
  /// Work of an average rank / work of the busiest; 1 when all have the same, or nothing.
  double balance() const;
  /// The bytes of the rank that gets most.
  std::int64_t most_bytes_received() const;
};

/// The plan of distributed::attention() for shapes of all tokens; nothing is sent.
/// @throws InvalidArgument when shapes or options do not fit, size < 1, or heads that are to be
/// divided do not divide.
HEED_API DivisionPlan plan(const AttentionShapes& shapes, int size,
                           const AttentionOptions& options = {},
                           DividedBy by = DividedBy::kAutomatic);

/// A line on the division, its reason, balance and bytes each, and one for each rank.
HEED_API std::ostream& operator<<(std::ostream& out, const DivisionPlan& plan);

/// What ranks compute with and how they are connected.
struct Cluster {
  double pairs_per_second;  ///< of one rank: a pair takes 2 · (head_dim + value_dim) operations
  double latency_seconds;   ///< of a message
  double bytes_per_second;  ///< that a rank sends, and receives
};

/// The time of a forward pass by a model. P = 1 takes the pairs alone.
///
/// Divided by tokens, in step j a rank computes with segment j, when it has ended step j − 1 and
/// the segment is there:
///
///     end(r, j)     = max(end(r, j − 1), arrival(j)) + pairs(r, j) / pairs_per_second
///     arrival(j)    = sent(j) + ⌈log₂ P⌉ · latency + bytes / bandwidth, of a segment that is read
///     sent(j)       = when its owner, and all who read it, have ended step j − 2 and the owner's
///                     link is free
///
/// A rank that reads nothing of a segment goes on at once. Divided by heads,
///
///     2 · (P − 1) · latency + bytes / bandwidth + pairs / pairs_per_second
///
/// of the rank that receives most and of the one that computes most.
HEED_API double simulated_seconds(const DivisionPlan& plan, const Cluster& cluster);

}}}  // namespace heed::v0::distributed
