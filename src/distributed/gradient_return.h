// Sends the gradients of keys and values from the ranks that compute them to the owners of the
// keys.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "distributed/shared_problem.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 { namespace distributed {

struct KeyGradients {
  MutableRows key;  // numbers of Real, as in value: [batch, num_kv_heads, tokens, dim]
  MutableRows value;
};

// Every rank goes through all segments in order: start(), then send(). It calls collect() for a
// segment while it works on the next one, so that the others have had time to send theirs.
template <class Real>
class GradientReturn {
 public:
  // Adds the gradients of this rank's tokens, of `batch` batch entries, to `own`. Either all ranks
  // contribute to a segment, or only its readers.
  GradientReturn(const SharedProblem<Real>& problem, const KeyGradients& own, std::int64_t batch,
                 bool all_add);

  // Returns zeroed memory for this rank's contribution to a segment.
  KeyGradients start(std::int64_t segment);
  // Sends the contribution to the owner of the segment, unless that is this rank.
  void send(std::int64_t segment);
  // If the segment is this rank's, adds the contributions in the order of ranks.
  void collect(std::int64_t segment);
  // Waits for messages that are still being sent.
  void finish();

 private:
  struct Slot {
    // Memory for a whole segment, and the used part of it: [batch, num_kv_heads, tokens, head_dim].
    Tensor<Real> key_room, value_room;
    TensorView<Real> key, value;
    std::vector<std::unique_ptr<Transfer>> transfers;

    void wait();
  };

  Slot& slot(std::int64_t segment) { return slots_[static_cast<std::size_t>(segment % 2)]; }
  Tensor<Real> room(std::int64_t dim) const;
  // Makes a slot hold this many tokens, all zeros.
  void clear(Slot& place, std::int64_t tokens) const;
  bool adds(int rank, std::int64_t segment) const {
    return all_add_ || problem_.readers.reads(rank, segment);
  }
  std::int64_t count(std::int64_t segment) const;
  void add(const Slot& place, std::int64_t segment) const;

  const SharedProblem<Real>& problem_;
  KeyGradients own_;
  std::int64_t batch_;
  bool all_add_;
  std::array<Slot, 2> slots_;
  Slot received_;
};

}}}  // namespace heed::v0::distributed
