// The computation of a rank while it sends and receives.
#pragma once

#include <exception>

#include "heed/core/cancellation.h"

namespace heed { inline namespace v0 { namespace distributed {

// While this object exists, no message is cancelled: a rank that stopped between two messages would
// leave the others waiting. Computation still uses the cancellation outer().
class UncancelledMessages {
 public:
  Cancellation* outer() const { return outer_; }

 private:
  Cancellation* outer_ = Cancellation::current();
  CancellationScope none_{nullptr};
};

// Runs a rank's computations. After a failure it computes nothing more, but the rank goes on with
// the messages that the others expect; finish() throws the failure.
class OwnPart {
 public:
  // The computations run under this cancellation.
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
