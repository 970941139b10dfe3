// What sequences of one call sum over the pages they share, computed once for the rows of all.
#pragma once

#include <optional>
#include <span>

#include "attention/cache/paged_keys.h"
#include "attention/plan/plan.h"
#include "core/arena.h"

namespace heed { inline namespace v0 { namespace detail {

// Memory of the states, which must outlive the calls that continue from them.
class SharedStates {
 public:
  // Reads the keys that several of these calls see, whose plan this is, and has each call go on
  // where those end: to the same bits, for chunks of keys are merged in the same order. Calls that
  // share nothing are as they were. keys[i] is that of calls[i].
  void compute(std::span<ForwardCall<float>> calls, std::span<const PagedKeys> keys,
               const Plan<float>& plan);

 private:
  std::optional<engine::Arena> arena_;
};

}}}  // namespace heed::v0::detail
