// Brings what ranks add to the gradients of keys and values to the ranks that have these.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "distributed/shared_problem.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 { namespace distributed {

struct KeyGradients {
  MutableRows key;  // of Real, as are those of values: [batch, num_kv_heads, tokens, dim]
  MutableRows value;
};

// Every rank goes through all segments in order: start(), then send(), and collect() once it is at
// the next one, so that the others have had time to send theirs.
template <class Real>
class GradientReturn {
 public:
  // Gradients of this rank's tokens are added to `own`, of so many batch entries. All ranks add to
  // a segment, or its readers.
  GradientReturn(const SharedProblem<Real>& problem, const KeyGradients& own, std::int64_t batch,
                 bool all_add);

  // Zeros for what this rank adds to a segment.
  KeyGradients start(std::int64_t segment);
  // Sends it to the owner, unless that is this rank.
  void send(std::int64_t segment);
  // Adds what the ranks have sent in their order, if the segment is this rank's.
  void collect(std::int64_t segment);
  // Waits for what is still being sent.
  void finish();

 private:
  struct Slot {
    // Room for a whole segment, and what is used of it: [batch, num_kv_heads, tokens, head_dim].
    Tensor<Real> key_room, value_room;
    TensorView<Real> key, value;
    std::vector<std::unique_ptr<Transfer>> transfers;

    void wait();
  };

  Slot& slot(std::int64_t segment) { return slots_[static_cast<std::size_t>(segment % 2)]; }
  Tensor<Real> room(std::int64_t dim) const;
  // Makes a slot one of so many tokens, with zeros.
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
