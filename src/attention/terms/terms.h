// The terms of a request, in the order of the contract.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attention/terms/score_term.h"
#include "heed/attention.h"
#include "heed/attention/plan.h"

namespace heed { inline namespace v0 {

// What terms are made of: options, and what these must fit.
template <class Real>
struct TermInput {
  const char* function;  // stands in front of errors
  const AttentionShapes& shapes;
  const ScoreShape& scores;
  const BasicAttentionOptions<Real>& options;
};

// A value: copies share the terms.
template <class Real>
class Terms {
 public:
  using Pointer = std::shared_ptr<const ScoreTerm<Real>>;

  Terms() = default;

  // Throws InvalidArgument when an option does not fit the scores.
  explicit Terms(const TermInput<Real>& input);

  // One more, after all others.
  void add(Pointer term) { terms_.push_back(std::move(term)); }

  auto begin() const { return terms_.begin(); }
  auto end() const { return terms_.end(); }
  bool empty() const { return terms_.empty(); }

  // How many of the terms are softcaps, which come first.
  std::size_t num_caps() const { return num_caps_; }
  // Whether some term's derivative may be anything but 1.
  bool have_derivative() const;
  // Whether some term reads the query.
  bool read_query() const;
  // Whether some term adds to values.
  bool add_to_values() const;
  // E.g. "softcap(30), bias[1, 8, 64, 64]"; "none".
  std::string description() const;

 private:
  std::vector<Pointer> terms_;
  std::size_t num_caps_ = 0;
};

// Each file of this folder makes one kind of term, or null where the options ask for none. They
// throw InvalidArgument when an option does not fit.
template <class Real>
struct TermFactory {
  using Pointer = std::shared_ptr<const ScoreTerm<Real>>;
  using Input = TermInput<Real>;

  static Pointer softcap(const Input& input);
  static Pointer score_mod(const Input& input);
  static Pointer alibi(const Input& input);
  static Pointer bias(const Input& input);
  static Pointer relative_bias(const Input& input);
  static Pointer relative_keys(const Input& input);
  static Pointer relative_values(const Input& input);

  // The order of the contract, docs/semantics.md; the mask follows.
  static constexpr std::array kInOrder{softcap,       score_mod,     alibi,          bias,
                                       relative_bias, relative_keys, relative_values};
};

}}  // namespace heed::v0
