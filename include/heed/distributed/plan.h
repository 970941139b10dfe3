/// Predicts the work, communication and time of attention over divided tokens.
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

/// The division of one call's work among ranks.
struct HEED_API DivisionPlan {
  TokenDivision queries;
  TokenDivision keys;
  int size;                    ///< the number of ranks
  DividedBy divided_by;        ///< kTokens or kHeads
  std::string reason;          ///< the reason for divided_by
  std::int64_t segment_bytes;  ///< keys and values of a whole segment, in bytes as sent
  /// [rank][segment]: pairs of a query and a key of the segment that the rank computes, over its
  /// heads and all batch entries: all pairs of the tiles with a visible pair.
  std::vector<std::vector<double>> pairs;
  std::vector<std::int64_t> received;  ///< bytes that each rank receives from others

  double pairs_of(int rank) const;
  /// Mean work per rank / work of the busiest rank; 1 when all ranks have the same, or none.
  double balance() const;
  /// The bytes that the rank which receives most receives.
  std::int64_t most_bytes_received() const;
};

/// The plan of distributed::attention() for shapes of all tokens; nothing is sent.
/// @throws InvalidArgument when shapes or options do not fit, size < 1, or heads that are to be
/// divided do not divide.
HEED_API DivisionPlan plan(const AttentionShapes& shapes, int size,
                           const AttentionOptions& options = {},
                           DividedBy by = DividedBy::kAutomatic);

/// Prints a line on the division, its reason, its balance and its bytes, and one for each rank.
HEED_API std::ostream& operator<<(std::ostream& out, const DivisionPlan& plan);

/// The speed of ranks and of the network between them.
struct Cluster {
  double pairs_per_second;  ///< of one rank: a pair takes 2 · (head_dim + value_dim) operations
  double latency_seconds;   ///< of a message
  double bytes_per_second;  ///< that a rank sends, and that it receives
};

/// The time of a forward pass, in seconds, from a model. For P = 1 it is the time of the pairs
/// alone.
///
/// Divided by tokens, in step j a rank computes with segment j, once it has ended step j − 1 and
/// the segment has arrived:
///
///     end(r, j)     = max(end(r, j − 1), arrival(j)) + pairs(r, j) / pairs_per_second
///     arrival(j)    = sent(j) + ⌈log₂ P⌉ · latency + bytes / bandwidth, of a segment that is read
///     sent(j)       = when its owner and all its readers have ended step j − 2, and the owner's
///                     link is free
///
/// A rank that reads nothing of a segment continues at once. Divided by heads, the time is
///
///     2 · (P − 1) · latency + bytes / bandwidth + pairs / pairs_per_second
///
/// with the bytes of the rank that receives most and the pairs of the one that computes most.
HEED_API double simulated_seconds(const DivisionPlan& plan, const Cluster& cluster);

}}}  // namespace heed::v0::distributed
