// The gradients of attention as Python objects.
#pragma once

#include <fmt/format.h>
#include <nanobind/nanobind.h>

#include <cstddef>
#include <optional>
#include <utility>

#include "arrays.h"
#include "heed/attention/backward.h"
#include "masks.h"
#include "operands.h"
#include "options.h"

namespace heed::python {

// Refuses score modifications without a derivative.
inline void check_derivative(const char* function, const Options& options) {
  if (!options.score_mod.is_valid() || has_derivative(options.score_mod)) return;
  throw InvalidArgument(
      fmt::format("{}: score_mod is a function of Python's, which has no derivative; "
                  "heed.torch.attention has that of one in PyTorch's operations",
                  function));
}

// A view of one number per row, with leading dimensions of 1 up to rank 3.
template <class Real>
TensorView<const Real> view_of_rows(const Array& array) {
  const TensorView<const Real> view = view_of<Real>(array);
  return view.rank() < 3 ? view.to_rank(3) : view;
}

// A view of all results of attention.
template <class T, class Real>
AttentionOutputView<T, Real> view_of_forward(const Forward& made) {
  return {view_of_rank_4<T>(made.out), view_of_rows<Real>(made.lse),
          made.lse_low ? view_of_rows<Real>(*made.lse_low) : TensorView<const Real>(),
          made.out_low ? view_of_rank_4<T>(*made.out_low) : TensorView<const T>(),
          made.kept ? view_of<Real>(*made.kept) : TensorView<const Real>()};
}

// Returns the gradients of the operands, in their ranks, and of the options in the order of
// kLearnable, which AttentionGradients in _operator.py has too: None for options that were not
// given.
template <class T, class Sum>
nb::tuple to_objects(AttentionGradients<T, Sum>&& found, const Operands& operands,
                     const Options& options) {
  const Library library = operands.library;
  const auto of_operand = [&](Tensor<T>& gradient, const Array& operand) {
    return to_object(std::move(gradient), library, static_cast<int>(operand.ndim()));
  };
  nb::list gradients;
  gradients.append(of_operand(found.query, operands.query));
  gradients.append(of_operand(found.key, operands.key));
  gradients.append(of_operand(found.value, operands.value));
  for (std::size_t i = 0; i < kNumLearned; ++i) {
    Tensor<Sum>& gradient = found.*kLearnable<Sum>[i].gradient;
    gradients.append(options.learned[i] ? to_object(std::move(gradient), library)
                                        : nb::object(nb::none()));
  }
  return nb::tuple(gradients);
}

}  // namespace heed::python
