#include "heed/core/cancellation.h"

#include <utility>

namespace heed { inline namespace v0 {

namespace {

thread_local Cancellation* current_cancellation = nullptr;

}  // namespace

Cancelled::~Cancelled() = default;

Cancellation::~Cancellation() = default;

Cancellation* Cancellation::current() noexcept { return current_cancellation; }

CancellationScope::CancellationScope(Cancellation* cancellation) noexcept
    : outer_(std::exchange(current_cancellation, cancellation)) {}

CancellationScope::~CancellationScope() { current_cancellation = outer_; }

void check_cancelled() {
  Cancellation* cancellation = current_cancellation;
  if (cancellation == nullptr) return;
  cancellation->poll();
  if (cancellation->is_requested()) throw Cancelled("the computation was cancelled");
}

}}  // namespace heed::v0
