// One pass of attention over tokens that are divided, or are not.
#pragma once

#include <cstdint>
#include <string>

#include "heed/attention.h"
#include "heed/attention/backward.h"
#include "heed/attention/plan.h"
#include "heed/core/tensor.h"
#include "heed/distributed/attention.h"
#include "heed/distributed/communicator.h"

namespace heed::cli {

struct DividedCase {
  bool is_backward = false;
  AttentionShapes shapes;  // of all tokens, as many keys as queries
  std::string mask;
  distributed::DividedBy divided_by = distributed::DividedBy::kAutomatic;

  AttentionOptions options() const;
};

// The tensors of a pass, of all tokens or of a rank's.
struct PassOperands {
  bool is_backward = false;
  distributed::DividedBy divided_by = distributed::DividedBy::kAutomatic;
  Tensor<float> query, key, value;
  Tensor<float> grad_out;          // of a backward pass
  AttentionOutput<float> forward;  // of a backward pass

  // Of all tokens; the same at every call.
  static PassOperands whole(const DividedCase& one);
  // Of this rank's tokens, without all of them. All ranks call it.
  static PassOperands own(Communicator& ranks, const DividedCase& one);
  // Of this rank's tokens, from those of all.
  PassOperands part(const Communicator& ranks) const;

  void compute(const AttentionOptions& options) const;
  // All ranks call it.
  void compute(Communicator& ranks, const AttentionOptions& options) const;
};

}  // namespace heed::cli
