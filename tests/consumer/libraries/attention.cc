#include <heed/attention.h>
#include <heed/core/random.h>

int main() {
  const auto x = heed::TorchGenerator(0).randn({1, 2, 70, 16});
  return heed::attention(x, x, x, {.mask = heed::causal()}).shape() == x.shape() ? 0 : 1;
}
