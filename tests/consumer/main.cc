// A user's program: includes, links and runs heed, with its own mask and score function.
#include <heed/heed.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>

namespace {

double largest_difference(const heed::Tensor<float>& a, const heed::Tensor<float>& b) {
  double largest = 0;
  for (std::int64_t i = 0; i < a.num_elements(); ++i) {
    largest = std::fmax(largest, std::fabs(a.data()[i] - b.data()[i]));
  }
  return largest;
}

bool attention_agrees() {
  heed::TorchGenerator random(0);
  const auto x = random.randn({1, 2, 70, 16});
  heed::AttentionOptions options;
  options.mask =
      heed::causal() & heed::Mask::where([](int /*b*/, int /*h*/, int q_idx, int kv_idx) {
        return (q_idx - kv_idx) % 3 != 1;
      });
  options.score_mod = [](auto score, int /*b*/, int h, int q_idx, int kv_idx) {
    return score - 0.1F * static_cast<float>(h + 1) * static_cast<float>(q_idx - kv_idx);
  };
  return largest_difference(heed::attention(x, x, x, options),
                            heed::reference::attention(x, x, x, options).out) < 1e-5;
}

bool misuse_is_an_exception() {
  const heed::Tensor<float> x(heed::Shape{2, 3});
  try {
    heed::attention(x, x, x);
    return false;
  } catch (const heed::InvalidArgument& error) {
    std::printf("heed %s: %s\n", heed::version(), error.what());
    return true;
  }
}

#ifdef HEED_WITHOUT_NN
bool model_learns() { return true; }
#else
// A user's model made of the library's layers.
struct Model : heed::nn::Module<> {
  heed::nn::SelfAttention<>& attention = make_module<heed::nn::SelfAttention<>>("attention", 4);
  std::string class_name() const override { return "Model"; }
};

bool model_learns() {
  Model model;
  heed::nn::Adam<> optimizer(model.parameters(), 0.1);
  const heed::nn::Variable<> x(heed::TorchGenerator(0).randn({1, 5, 4}));
  const auto loss = [&] { return heed::nn::mean(model.attention.forward(x).out); };
  const auto before = loss();
  before.backward();
  optimizer.step();
  return loss().item() < before.item();
}
#endif

}  // namespace

int main() { return attention_agrees() && misuse_is_an_exception() && model_learns() ? 0 : 1; }
