// Sends the keys and values of each segment to the ranks that read them, and gathers all of one
// batch entry for the rare rows that must read them twice.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/arena.h"
#include "distributed/choice.h"
#include "distributed/shared_problem.h"

namespace heed { inline namespace v0 { namespace distributed {

// The keys and values of some tokens, [batch, num_kv_heads, tokens, dim] each.
struct KeyRows {
  Rows key;
  Rows value;
};

// Copies `count` tokens from `first` on to memory without gaps: all keys, then all values.
void pack_tokens(const KeyRows& from, std::int64_t first, std::int64_t count,
                 const TokenBytes& bytes, std::byte* to);
// Views tokens that pack_tokens() wrote.
KeyRows packed_tokens(const KeyRows& like, std::int64_t count, const TokenBytes& bytes,
                      const std::byte* packed);

// Every rank goes through all segments in order. The next segment is in transit while the present
// one is read.
class SegmentExchange {
 public:
  template <class Real>
  explicit SegmentExchange(const SharedProblem<Real>& problem)
      : ranks_(problem.ranks),
        division_(problem.keys),
        readers_(problem.readers),
        own_{problem.key, problem.value},
        bytes_(TokenBytes::of(problem.request.shape)) {
    take_memory();
  }

  // Calls visit(segment, its keys and values) for each segment; the pointer is null if this rank
  // does not read it. All ranks call it, once.
  template <class Visit>
  void for_each_segment(const Visit& visit) {
    const std::int64_t segments = division_.num_segments();
    if (segments > 0) start(0);
    for (std::int64_t j = 0; j < segments; ++j) {
      if (j + 1 < segments) start(j + 1);
      if (readers_.reads(ranks_.rank(), j)) {
        const KeyRows rows = wait(j);
        visit(j, &rows);
      } else {
        visit(j, static_cast<const KeyRows*>(nullptr));
      }
    }
    for (Slot& place : slots_) place.wait();
  }

 private:
  struct Slot {
    std::byte* memory = nullptr;
    std::vector<std::unique_ptr<Transfer>> transfers;

    void wait();
  };

  // Sends the segment if it is this rank's, or begins to receive it if this rank reads it.
  // Overwrites the memory of the segment before the previous one.
  void start(std::int64_t segment);
  // Waits for a segment that this rank reads.
  KeyRows wait(std::int64_t segment);
  Slot& slot(std::int64_t segment) { return slots_[static_cast<std::size_t>(segment % 2)]; }
  void take_memory();
  bool is_read_by_all(std::int64_t segment) const;

  Communicator& ranks_;
  TokenDivision division_;
  const Readers& readers_;
  KeyRows own_;
  TokenBytes bytes_;
  std::optional<engine::Arena> memory_;
  std::array<Slot, 2> slots_;
};

class GatheredKeys {
 public:
  // All ranks call it.
  template <class Real>
  GatheredKeys(const SharedProblem<Real>& problem, std::int64_t batch)
      : GatheredKeys(problem.ranks, problem.keys, entry(KeyRows{problem.key, problem.value}, batch),
                     TokenBytes::of(problem.request.shape)) {}

  // All keys and values, with a batch stride of 0: every batch entry reads the same ones.
  const KeyRows& rows() const { return rows_; }

 private:
  GatheredKeys(Communicator& ranks, const TokenDivision& division, const KeyRows& own,
               TokenBytes bytes);

  static KeyRows entry(KeyRows rows, std::int64_t batch) {
    rows.key.data += batch * rows.key.batch_stride;
    rows.value.data += batch * rows.value.batch_stride;
    return rows;
  }

  std::unique_ptr<std::byte[]> memory_;
  KeyRows rows_;
};

}}}  // namespace heed::v0::distributed
