/// The softmax of one row, computed over keys one after the other or in parts.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "heed/core/config.h"
#include "heed/core/elementary.h"

namespace heed { inline namespace v0 {

namespace detail {

[[noreturn]] HEED_API void throw_value_dim(const char* function, std::size_t found,
                                           std::size_t expected);

}  // namespace detail

/// softmax(scores) · values over the keys seen so far. Real is float or double.
///
/// With m the largest score of these keys:
///
///     largest = m,   sum = Σ exp(score − m),   out = Σ exp(score − m) · value
///
/// add() and merge() are commutative and associative within rounding. Merging an empty softmax
/// changes no bit; merging into an empty one copies the bits.
///
/// A key with a score of −∞ is hidden: its value may be NaN. A score of +∞ outweighs all finite
/// ones, several of them share equally, and lse is +∞. A score of NaN makes the whole row NaN.
///
/// Source: Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018.
template <class Real>
struct OnlineSoftmax {
  Real largest = -std::numeric_limits<Real>::infinity();
  Real sum = 0;           ///< at least 1 once a key was added
  std::vector<Real> out;  ///< [value_dim]

  explicit OnlineSoftmax(std::size_t value_dim) : out(value_dim, Real{0}) {}

  /// True if no key was added.
  bool is_empty() const { return largest == -std::numeric_limits<Real>::infinity(); }

  /// Removes all keys.
  void clear() {
    largest = -std::numeric_limits<Real>::infinity();
    sum = 0;
    std::fill(out.begin(), out.end(), Real{0});
  }

  /// Adds one key. To add another softmax, pass its lse as the score and its result as the value.
  /// @throws InvalidArgument unless the value has value_dim elements.
  void add(Real score, std::span<const Real> value) {
    check("OnlineSoftmax::add", value.size());
    add(score, 1, value.data());
  }

  /// Adds the keys of `other`.
  /// @throws InvalidArgument unless the other's value_dim is the same.
  void merge(const OnlineSoftmax& other) {
    check("OnlineSoftmax::merge", other.out.size());
    add(other.largest, other.sum, other.out.data());
  }

  /// Writes out / sum, or zeros where no key was added, into `result` and returns the natural
  /// logarithm lse = log Σ exp(score), −∞ where no key was added.
  /// @throws InvalidArgument unless the result has value_dim elements.
  Real normalise(std::span<Real> result) const {
    check("OnlineSoftmax::normalise", result.size());
    for (std::size_t d = 0; d < out.size(); ++d) result[d] = is_empty() ? 0 : out[d] / sum;
    return is_empty() ? largest : largest + elementary::log(sum);
  }

 private:
  // Adds keys whose largest score, sum and out are given.
  void add(Real other_largest, Real other_sum, const Real* other_out) {
    if (other_largest == -std::numeric_limits<Real>::infinity()) return;
    const bool is_first = is_empty();
    const Real m = other_largest <= largest ? largest : other_largest;  // NaN stays
    const Real mine = is_first ? 0 : weight(largest, m);
    const Real others = weight(other_largest, m);
    largest = m;
    sum = mine * sum + others * other_sum;
    for (std::size_t d = 0; d < out.size(); ++d) {
      const Real added = others * other_out[d];
      out[d] = is_first ? added : mine * out[d] + added;  // 0 + −0 would be 0
    }
  }

  // ∞ − ∞ would be NaN.
  static Real weight(Real score, Real m) { return score == m ? 1 : elementary::exp(score - m); }

  void check(const char* function, std::size_t found) const {
    if (found != out.size()) detail::throw_value_dim(function, found, out.size());
  }
};

}}  // namespace heed::v0
