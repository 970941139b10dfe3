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

// The arguments of the functions that make terms: the options, and what they must fit.
template <class Real>
struct TermInput {
  const char* function;  // the beginning of error messages
  const AttentionShapes& shapes;
  const ScoreShape& scores;
  const BasicAttentionOptions<Real>& options;
};

// A value type; copies share the terms.
template <class Real>
class Terms {
 public:
  using Pointer = std::shared_ptr<const ScoreTerm<Real>>;

  Terms() = default;

  // Throws InvalidArgument if an option does not fit the scores.
  explicit Terms(const TermInput<Real>& input);

  // Adds a term after all others.
  void add(Pointer term) { terms_.push_back(std::move(term)); }

  auto begin() const { return terms_.begin(); }
  auto end() const { return terms_.end(); }
  bool empty() const { return terms_.empty(); }

  // The number of softcaps, which are the first terms.
  std::size_t num_caps() const { return num_caps_; }
  // True if some term's derivative may be anything but 1.
  bool have_derivative() const;
  bool are_learned() const;  // some term has a gradient of its own
  // True if some term reads the query.
  bool read_query() const;
  // True if some term adds to values.
  bool add_to_values() const;
  // E.g. "softcap(30), bias[1, 8, 64, 64]", or "none".
  std::string description() const;

 private:
  std::vector<Pointer> terms_;
  std::size_t num_caps_ = 0;
};

// The functions that make terms, one for each file of this folder. They return null if the options
// do not ask for the term and throw InvalidArgument if an option does not fit.
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

  // The order of docs/semantics.md. The mask is applied after the terms.
  static constexpr std::array kInOrder{softcap,       score_mod,     alibi,          bias,
                                       relative_bias, relative_keys, relative_values};
};

}}  // namespace heed::v0
