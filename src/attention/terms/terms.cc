#include "attention/terms/terms.h"

#include <algorithm>
#include <utility>

namespace heed { inline namespace v0 {

template <class Real>
Terms<Real>::Terms(const TermInput<Real>& input) {
  for (const auto make : TermFactory<Real>::kInOrder) {
    Pointer term = make(input);
    if (term == nullptr) continue;
    if (make == TermFactory<Real>::softcap) num_caps_ = 1;
    terms_.push_back(std::move(term));
  }
}

template <class Real>
bool Terms<Real>::have_derivative() const {
  return std::any_of(begin(), end(), [](const Pointer& term) { return term->has_derivative(); });
}

template <class Real>
bool Terms<Real>::are_learned() const {
  return std::any_of(begin(), end(),
                     [](const Pointer& term) { return term->gradient() != nullptr; });
}

template <class Real>
bool Terms<Real>::read_query() const {
  return std::any_of(begin(), end(), [](const Pointer& term) { return term->reads_query(); });
}

template <class Real>
bool Terms<Real>::add_to_values() const {
  return std::any_of(begin(), end(), [](const Pointer& term) { return term->adds_to_values(); });
}

template <class Real>
std::string Terms<Real>::description() const {
  std::string text;
  for (const Pointer& term : terms_) text += (text.empty() ? "" : ", ") + term->description();
  return text.empty() ? "none" : text;
}

template class Terms<float>;
template class Terms<double>;

}}  // namespace heed::v0
