// What a rank computes while it sends and receives.
#pragma once

#include <exception>

#include "heed/core/cancellation.h"

namespace heed { inline namespace v0 { namespace distributed {

// While it lives, no message is cancelled: a rank that stopped between two of them would leave the
// others waiting. What is computed still is, under outer().
class UncancelledMessages {
 public:
  Cancellation* outer() const { return outer_; }

 private:
  Cancellation* outer_ = Cancellation::current();
  CancellationScope none_{nullptr};
};

// After a failure nothing more is computed, but the rank goes on with the messages that the others
// expect; the failure is thrown at the end.
class OwnPart {
 public:
  // Computes under this cancellation.
  explicit OwnPart(Cancellation* cancellation) : cancellation_(cancellation) {}

  template <class Compute>
  void run(const Compute& compute) {
    if (failure_) return;
    try {
      const CancellationScope scope(cancellation_);
      compute();
    } catch (...) {
      failure_ = std::current_exception();
    }
  }

  void finish() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  Cancellation* cancellation_;
  std::exception_ptr failure_;
};

}}}  // namespace heed::v0::distributed
