// A user-defined mask and score modification: a penalty on the distance, as in ALiBi, with a
// causal, strided mask.
#include <heed/heed.h>

#include <iostream>

int main() {
  heed::TorchGenerator random(0);
  const auto x = random.randn({1, 2, 8, 16});

  heed::AttentionOptions options;
  options.mask =
      heed::causal() & heed::Mask::where([](int /*b*/, int /*h*/, int q_idx, int kv_idx) {
        return q_idx - kv_idx < 3 || kv_idx % 4 == 0;
      });
  options.score_mod = [](auto score, int /*b*/, int h, int q_idx, int kv_idx) {
    return score - heed::exp(-float(h)) * float(q_idx - kv_idx);
  };

  for (const auto& line : heed::to_lines(options.mask, {.q_len = 8, .kv_len = 8})) {
    std::cout << line << '\n';
  }
  std::cout << to_string(heed::attention(x, x, x, options).shape()) << '\n';
}
