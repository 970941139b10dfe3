// The terms of a request, in the order of the contract.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "attention/terms/score_term.h"
#include "heed/attention.h"
#include "heed/plan.h"

namespace heed::inline v0 {

// A value: copies share the terms.
template <class Real>
class Terms {
 public:
  using Pointer = std::shared_ptr<const ScoreTerm<Real>>;

  Terms() = default;

  // Throws InvalidArgument, with `function` in front, when an option does not fit the scores.
  Terms(const char* function, const ScoreShape& shape, const BasicAttentionOptions<Real>& options);

  auto begin() const { return terms_.begin(); }
  auto end() const { return terms_.end(); }
  bool empty() const { return terms_.empty(); }

  // How many of the terms are softcaps, which come first.
  std::size_t num_caps() const { return num_caps_; }
  // Whether some term's derivative may be anything but 1.
  bool have_derivative() const;
  // E.g. "softcap(30), bias[1, 8, 64, 64]"; "none".
  std::string description() const;

 private:
  std::vector<Pointer> terms_;
  std::size_t num_caps_ = 0;
};

// Each file of this folder makes one kind of term, or null where the options ask for none. They
// throw InvalidArgument, with `function` in front, when an option does not fit.
template <class Real>
struct TermFactory {
  using Pointer = std::shared_ptr<const ScoreTerm<Real>>;
  using Options = BasicAttentionOptions<Real>;

  static Pointer softcap(const char* function, const ScoreShape& shape, const Options& options);
  static Pointer score_mod(const char* function, const ScoreShape& shape, const Options& options);
  static Pointer alibi(const char* function, const ScoreShape& shape, const Options& options);
  static Pointer bias(const char* function, const ScoreShape& shape, const Options& options);
};

}  // namespace heed::inline v0
