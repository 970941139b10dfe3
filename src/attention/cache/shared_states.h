// Sums over the pages that the sequences of a call share, computed once for the rows of all.
#pragma once

#include <optional>
#include <span>

#include "attention/cache/paged_keys.h"
#include "attention/plan/plan.h"
#include "core/arena.h"

namespace heed { inline namespace v0 { namespace detail {

// The memory of the states. It must outlive the calls that continue from them.
class SharedStates {
 public:
  // Computes the states over the keys that several of these calls see, and makes each call continue
  // from there. Results have the same bits, as chunks of keys are merged in the same order. Calls
  // that share nothing do not change. `pass` was prepared for the calls, and keys[i] belongs to
  // calls[i].
  void compute(std::span<ForwardCall<float>> calls, std::span<const PagedKeys> keys,
               const Prepared<float>& pass);

 private:
  std::optional<engine::Arena> arena_;
};

}}}  // namespace heed::v0::detail
