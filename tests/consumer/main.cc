// The smallest program that includes, links and runs heed.
#include <cstdio>
#include <vector>

#include "heed/config.h"
#include "heed/parallel.h"
#include "heed/tensor.h"

int main() {
  heed::Tensor<float> tensor({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
  heed::parallel_for(0, 2, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) tensor(i, 0) *= 10;
  });
  try {
    static_cast<void>(tensor.view().select(0, 2));
    return 1;
  } catch (const heed::InvalidArgument& error) {
    std::printf("heed %s: %s\n", heed::version(), error.what());
  }
  return tensor(0, 0) == 10 && tensor(1, 0) == 40 ? 0 : 1;
}
