// One pass of attention over divided or undivided tokens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/attention.h"
#include "heed/attention/backward.h"
#include "heed/attention/plan.h"
#include "heed/core/tensor.h"
#include "heed/distributed/attention.h"
#include "heed/distributed/communicator.h"

namespace heed::cli {

struct DividedCase {
  bool is_backward = false;
  AttentionShapes shapes;  // of all tokens; q_len equals kv_len
  std::string mask;
  distributed::DividedBy divided_by = distributed::DividedBy::kAutomatic;

  AttentionOptions options() const;
};

// Returns a way of dividing by its name: automatic, tokens or heads.
distributed::DividedBy divided_by(const std::string& name);

// Throws UsageError for a case that cannot be divided among so many ranks.
void check_division(const std::vector<DividedCase>& cases, const std::vector<std::int64_t>& sizes);

// The tensors of a pass over all tokens or over the tokens of one rank.
struct PassOperands {
  bool is_backward = false;
  distributed::DividedBy divided_by = distributed::DividedBy::kAutomatic;
  Tensor<float> query, key, value;
  Tensor<float> grad_out;          // backward pass only
  AttentionOutput<float> forward;  // backward pass only

  // Makes operands of all tokens, the same numbers at every call.
  static PassOperands whole(const DividedCase& one);
  // Makes operands of this rank's tokens without those of other ranks. All ranks must call it.
  static PassOperands own(Communicator& ranks, const DividedCase& one);
  // Returns this rank's part of the operands of all tokens.
  PassOperands part(const Communicator& ranks) const;

  void compute(const AttentionOptions& options) const;
  // All ranks must call it.
  void compute(Communicator& ranks, const AttentionOptions& options) const;
};

}  // namespace heed::cli
