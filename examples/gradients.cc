// The gradients of a loss through attention: the influence of each key's value on the last query.
#include <heed/heed.h>

#include <cstdint>
#include <iostream>

int main() {
  heed::TorchGenerator random(0);
  const auto query = random.randn<double>({1, 1, 4, 8});
  const auto key = random.randn<double>({1, 1, 4, 8});
  const auto value = random.randn<double>({1, 1, 4, 8});

  heed::Tensor<double> grad_out(query.shape());  // the loss is the sum of the last query's output
  for (std::int64_t d = 0; d < 8; ++d) grad_out(0, 0, 3, d) = 1;
  const auto gradients =
      heed::reference::attention_backward(grad_out, query, key, value, {.mask = heed::causal()});
  std::cout << "d loss / d value, one row per key\n"
            << heed::render_matrix(gradients.value.view().reshape({4, 8}), {.decimals = 3});
}
