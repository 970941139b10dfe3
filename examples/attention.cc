// Causal attention of three tokens, with its weights.
#include <heed/heed.h>

#include <iostream>

int main() {
  const heed::Tensor<float> x({1, 1, 3, 2}, {1, 0, 0, 1, 1, 1});  // [batch, heads, length, dim]
  const auto result = heed::reference::attention(x, x, x, {.mask = heed::causal()},
                                                 heed::reference::Keep::kWeights);
  std::cout << "weights\n" << heed::render_matrix(result.weights.view().reshape({3, 3}));
  std::cout << "out\n" << heed::render_matrix(result.out.view().reshape({3, 2}));
}
