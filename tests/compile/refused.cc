// Plausible first attempts that do not compile: tests/compile/check expects the compiler's error to
// contain the remedy after each line.
//
// The remedies must stay on their lines:
// clang-format off
#include <cmath>

#include "heed/attention.h"
#include "heed/attention/backward.h"
#include "heed/nn/variable.h"
#include "heed/attention/packed.h"

namespace {

using heed::Tensor;

Tensor<float> make() { return Tensor<float>({1, 1, 2, 4}); }

}  // namespace

void masks() {
  const Tensor<float> x = make();
  const Tensor<bool> allowed({2, 2});
  heed::attention(x, x, x, {.mask = allowed});              // remedy: write Mask::allow(tensor) where it does
  heed::attention(x, x, x, {.causal = true});               // remedy: write .mask = heed::causal()
  heed::attention_with_lse(x, x, x, {.mask = true});        // remedy: write heed::causal(), or no mask at all
  heed::attention(x, x, x, {.mask = [](int, int, int q, int k) { return k <= q; }});  // remedy: write Mask::where(function)
}

void types() {
  const Tensor<float> x = make();
  const Tensor<double> d({1, 1, 2, 4});
  const Tensor<int> whole({1, 1, 2, 4});
  const heed::AttentionOptions options;
  const heed::nn::Variable<> variable(make());
  const Tensor<float> mixed = heed::attention(x, x, d, {.softcap = 2});  // remedy: query, key and value are of one type
  const Tensor<float> counted = heed::attention(whole, whole, whole);  // remedy: query, key and value are float, double
  heed::attention_for_backward(d, d, d, options);           // remedy: options of double tensors are AttentionOptions64
  heed::attention(variable, variable, variable);            // remedy: of variables write heed::nn::scaled_dot_product_attention
  const auto made = heed::attention_with_lse(d, d, d);
  heed::attention_backward(x, d, d, d, made);               // remedy: grad_out, query, key and value are of one type
  heed::attention_packed(d, d, d, heed::PackedSequences{}); // remedy: query, key and value of packed sequences are of one type
}

void scores() {
  heed::AttentionOptions options;
  options.score_mod = [](auto score, int, int, int, int) { return std::tanh(score); };  // remedy: write heed::tanh
  options.score_mod = [](auto score, int, int, int, int) { return std::exp(score); };   // remedy: write heed::exp
  options.score_mod = [](auto score, int, int, int, int) { return std::pow(score, 2); };  // remedy: write x * x
  options.score_mod = [](float score, int, int, int, int) { return score; };            // remedy: write `auto score`
}

void temporaries() {
  const auto view = make().view();                          // remedy: name the tensor first
  const auto elements = make().elements();                  // remedy: name the tensor first
}
