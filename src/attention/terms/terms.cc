#include "attention/terms/terms.h"

#include <algorithm>
#include <utility>

namespace heed::inline v0 {

// The order of the contract, docs/semantics.md; the mask follows.
template <class Real>
Terms<Real>::Terms(const char* function, const ScoreShape& shape,
                   const BasicAttentionOptions<Real>& options) {
  using Factory = TermFactory<Real>;
  const auto add = [&](auto make) {
    Pointer term = make(function, shape, options);
    if (term == nullptr) return false;
    terms_.push_back(std::move(term));
    return true;
  };
  if (add(Factory::softcap)) num_caps_ = 1;
  add(Factory::score_mod);
  add(Factory::alibi);
  add(Factory::bias);
}

template <class Real>
bool Terms<Real>::have_derivative() const {
  return std::any_of(begin(), end(), [](const Pointer& term) { return term->has_derivative(); });
}

template <class Real>
std::string Terms<Real>::description() const {
  std::string text;
  for (const Pointer& term : terms_) text += (text.empty() ? "" : ", ") + term->description();
  return text.empty() ? "none" : text;
}

template class Terms<float>;
template class Terms<double>;

}  // namespace heed::inline v0
