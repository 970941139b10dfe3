// Clang verifies that exactly the warnings in the comments are given. Version 14 gives none for a
// view initialised in braces.
#include "heed/attention.h"
#include "heed/attention/backward.h"
#include "heed/core/tensor.h"

namespace {

using heed::AttentionOutput;
using heed::AttentionOutputView;
using heed::FloatView;
using heed::Tensor;
using heed::TensorView;

Tensor<float> make() { return Tensor<float>({2}); }
AttentionOutput<float> make_output() { return {}; }
float first(FloatView view) { return view(0); }

}  // namespace

float dangling_view() {
  const FloatView view = make();  // expected-warning {{temporary whose address is used}}
  return view(0);
}

float dangling_view_to_write_to() {
  const TensorView<float> view = make();  // expected-warning {{temporary whose address is used}}
  return view(0);
}

float dangling_output() {
  const AttentionOutputView<float> view =
      make_output();  // expected-warning {{temporary whose address is used}}
  return view.out(0);
}

FloatView view_of_a_local() {
  const Tensor<float> local = make();
  return local;  // expected-warning {{address of stack memory}}
}

float views_that_live() {
  const Tensor<float> tensor = make();
  const FloatView view = tensor;
  return view(0) + first(make()) + make()(0);
}
