// The gradients of a loss through attention: what moves when the output of one query should grow.
#include <heed/heed.h>

#include <iostream>

int main() {
  heed::TorchGenerator random(0);
  const auto query = random.randn<double>({1, 1, 4, 8});
  const auto key = random.randn<double>({1, 1, 4, 8});
  const auto value = random.randn<double>({1, 1, 4, 8});

  heed::Tensor<double> grad_out(query.shape());
  for (double& element : grad_out.view().select(2, 3).to_rank(2).reshape({8}).elements()) {
    element = 1;
  }
  const auto gradients =
      heed::reference::attention_backward(grad_out, query, key, value, {.mask = heed::causal()});
  std::cout << "d loss / d value, one row per key\n"
            << heed::render_matrix(gradients.value.view().reshape({4, 8}), {.decimals = 3});
}
