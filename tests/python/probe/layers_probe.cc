// layers_probe FOLDER: builds every layer with seed 0, runs it forward and backward, trains small
// models, and writes the results to FOLDER/layers.npz, members LAYER/QUANTITY, and
// FOLDER/summaries.json, {LAYER: text}. tests/python/test_layers.py does the same in PyTorch.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "heed/heed.h"
#include "report.h"

namespace heed::probe { namespace {

using nn::Variable;

// A layer from [2, 7, width] to the same shape, with weights.
template <class Layer>
void report_attention(Report& report, const std::string& name, Layer& layer, std::int64_t width) {
  const Variable<float> x = draw({2, 7, width});
  report_layer(report, name, layer, {x}, [&] {
    auto [out, weights] = layer.forward(x, {.return_attention = true});
    report.add(name + "/weights", weights);
    return out;
  });
}

void report_attention_layers(Report& report) {
  const auto multi_head = [&](const std::string& name, const nn::AttentionConfig& config) {
    set_seed(0);
    nn::MultiHeadAttention<> layer(config);
    report_attention(report, name, layer, config.embed_dim);
  };
  multi_head("fused", nn::fused_projection(16, 4, 0));
  multi_head("separate", nn::separate_projections(16, 2));
  multi_head("twice_dropped", nn::twice_dropped(16, 4, 0));
  set_seed(0);
  nn::SelfAttention<> self(16);
  report_attention(report, "self", self, 16);
  set_seed(0);
  nn::SingleHeadAttention<> single(16, 5);
  report_attention(report, "single_head", single, 16);
  set_seed(0);
  nn::CausalSelfAttention<> causal_self(16, 4, 9, 0);
  report_attention(report, "causal_self", causal_self, 16);
  set_seed(0);
  nn::CausalMultiHeadAttention<> causal_multi_head(16, 2, 7, 0);
  report_attention(report, "causal_multi_head", causal_multi_head, 16);
  set_seed(0);
  nn::MultiHeadAttention<> cross(nn::cross_projections(16, 4, 0));
  const Variable<float> query = draw({2, 5, 16});
  const Variable<float> context = draw({2, 7, 16});
  report_layer(report, "cross", cross, {query, context},
               [&] { return cross.forward(query, context, context).out; });
}

// Self-attention with terms of the operator. If `bias` gives a shape, a bias of the scores is
// learned.
void report_configured(Report& report, const std::string& name, const nn::AttentionConfig& config,
                       const std::optional<Shape>& bias = std::nullopt) {
  set_seed(0);
  nn::MultiHeadAttention<> layer(config);
  std::vector<Variable<float>> inputs{draw({2, 7, 16})};
  if (bias) inputs.push_back(draw(*bias));
  report_layer(report, name, layer, inputs, [&] {
    nn::AttendOptions<> options{.return_attention = true};
    if (bias) options.terms.bias = inputs.back();
    auto [out, weights] = layer.forward(inputs.front(), options);
    report.add(name + "/weights", weights);
    return out;
  });
}

void report_configured_layers(Report& report) {
  const nn::AttentionConfig plain{.embed_dim = 16, .num_heads = 4};
  const auto with = [&](const auto& change) {
    nn::AttentionConfig config = plain;
    change(config);
    return config;
  };
  const auto fuse = [](nn::AttentionConfig& config) {
    config.inputs = {"qkv_proj"};
    config.bias = false;
  };
  report_configured(report, "grouped", with([](auto& config) { config.num_kv_heads = 2; }));
  report_configured(report, "grouped_fused", with([&](auto& config) {
                      fuse(config);
                      config.num_kv_heads = 1;
                    }));
  report_configured(report, "window",
                    with([](auto& config) { config.mask = sliding_window(3, 0); }));
  report_configured(report, "softcap", with([](auto& config) { config.softcap = 0.5; }));
  report_configured(report, "alibi", with([](auto& config) { config.alibi = true; }));
  report_configured(report, "rotary", with([](auto& config) {
                      config.num_heads = 2;
                      config.rotary = {
                          .max_len = 9, .base = 100, .pairing = RotaryPairing::kHalves};
                    }));
  report_configured(report, "rotary_fused", with([&](auto& config) {
                      fuse(config);
                      config.num_kv_heads = 2;
                      config.rotary = {
                          .max_len = 9, .base = 100, .pairing = RotaryPairing::kHalves};
                    }));
  report_configured(report, "all_terms", with([](auto& config) {
                      config.num_kv_heads = 2;
                      config.mask = sliding_window(4, 0);
                      config.softcap = 0.5;
                      config.alibi = true;
                      config.rotary = {
                          .max_len = 9, .base = 100, .pairing = RotaryPairing::kHalves};
                    }),
                    Shape{4, 7, 7});
  report_configured(report, "biased", plain, Shape{4, 1, 7});
}

template <class Layer>
void report_alignment(Report& report, const std::string& name, Layer& layer) {
  const Variable<float> encoder = draw({2, 7, 12});
  const Variable<float> decoder = draw({2, 12});
  report_layer(report, name, layer, {encoder, decoder}, [&] {
    const auto [context, weights] = layer.forward(encoder, decoder);
    report.add(name + "/weights", weights.value());
    return context;
  });
}

void report_alignment_layers(Report& report) {
  set_seed(0);
  nn::AdditiveAttention<> additive(12, 12, 5);
  report_alignment(report, "additive", additive);
  const std::pair<const char*, nn::LuongScore> methods[] = {
      {"luong_dot", nn::LuongScore::kDot},
      {"luong_general", nn::LuongScore::kGeneral},
      {"luong_concat", nn::LuongScore::kConcat}};
  for (const auto& [name, method] : methods) {
    set_seed(0);
    nn::MultiplicativeAttention<> layer(12, 12, method);
    report_alignment(report, name, layer);
  }
}

void report_basic_layers(Report& report) {
  set_seed(0);
  nn::Sequential<> mlp;
  mlp.append<nn::Linear<>>(6, 17);
  mlp.append<nn::ReLU<>>();
  mlp.append<nn::LayerNorm<>>(17);
  mlp.append<nn::Linear<>>(17, 3, false);
  mlp.append<nn::Tanh<>>();
  mlp.append<nn::Dropout<>>(0.0);
  const Variable<float> x = draw({4, 5, 6});
  report_layer(report, "mlp", mlp, {x}, [&] { return mlp.forward(x); });

  set_seed(0);
  nn::Embedding<> embedding(13, 6, 2);
  const Tensor<std::int64_t> ids = default_generator().randint(0, 13, {3, 20});
  report_layer(report, "embedding", embedding, {}, [&] { return embedding.forward(ids); });

  set_seed(0);
  nn::SinusoidalPositionalEncoding<> sinusoidal(8, 30, 0.0);
  const Variable<float> y = draw({2, 5, 8});
  report_layer(report, "sinusoidal", sinusoidal, {y}, [&] { return sinusoidal.forward(y); });

  set_seed(0);
  nn::LearnedPositionalEncoding<> learned(8, 30, 0);
  const Variable<float> z = draw({2, 5, 8});
  report_layer(report, "learned", learned, {z}, [&] { return learned.forward(z); });
}

constexpr std::int64_t kWidth = 16;
constexpr std::int64_t kVocabulary = 11;

// A transformer block over characters. Causal attention is tested with and without biases: the
// gradient of a key bias is only rounding error, of which Adam would make whole steps.
struct Model : nn::Module<> {
  explicit Model(bool has_bias) {
    if (has_bias) {
      biased = &make_module<nn::CausalSelfAttention<>>("attention", kWidth, 4, 8, 0.0);
    } else {
      plain =
          &make_module<nn::MultiHeadAttention<>>("attention", nn::fused_projection(kWidth, 4, 0));
    }
  }

  nn::TokenEmbedding<>& tokens = make_module<nn::TokenEmbedding<>>("tokens", kVocabulary, kWidth);
  nn::LearnedPositionalEncoding<>& positions =
      make_module<nn::LearnedPositionalEncoding<>>("positions", kWidth, 8, 0.0);
  nn::LayerNorm<>& norm = make_module<nn::LayerNorm<>>("norm", kWidth);
  nn::Linear<>& out = make_module<nn::Linear<>>("out", kWidth, kVocabulary);
  nn::CausalSelfAttention<>* biased = nullptr;
  nn::MultiHeadAttention<>* plain = nullptr;

  Variable<float> forward(TensorView<const std::int64_t> ids) {
    const Variable<float> x = positions.forward(tokens.forward(ids));
    const Variable<float> attended =
        biased != nullptr ? biased->forward(x).out : plain->forward(x, {.mask = causal()}).out;
    return out.forward(norm.forward(x + attended));
  }
  std::string class_name() const override { return "Model"; }
};

// Trains for 100 steps on the same batch: predicts the next token where it is not 0.
template <class MakeOptimizer>
void report_training(Report& report, const std::string& name, bool has_bias,
                     const MakeOptimizer& make_optimizer) {
  set_seed(0);
  Model model(has_bias);
  const Tensor<std::int64_t> ids = default_generator().randint(0, kVocabulary, {4, 9});
  const auto inputs = to_tensor(ids.view().slice(1, 0, 8));
  const auto targets = to_tensor(ids.view().slice(1, 1, 9));
  auto optimizer = make_optimizer(model.parameters());
  const nn::WarmupCosine schedule{
      .peak = optimizer.learning_rate(), .warmup_steps = 10, .total_steps = 100, .floor = 1e-4};
  Tensor<float> losses({100});
  Tensor<float> norms({100});
  for (std::int64_t step = 0; step < 100; ++step) {
    optimizer.set_learning_rate(schedule(step));
    optimizer.zero_grad();
    const Variable<float> loss = nn::cross_entropy<float>(model.forward(inputs), targets, 0);
    loss.backward();
    norms(step) = static_cast<float>(nn::clip_grad_norm(model.parameters(), 0.5));
    optimizer.step();
    losses(step) = loss.item();
  }
  report.add(name + "/losses", losses);
  report.add(name + "/norms", norms);
  report.add(name + "/state", model.state_dict());
}

void report_all_training(Report& report) {
  const auto sgd = [](const auto& parameters) {
    return nn::Sgd<>(parameters, 0.1, {.momentum = 0.9, .weight_decay = 0.01});
  };
  report_training(report, "train_sgd", false, sgd);
  report_training(report, "train_sgd_biased", true, sgd);
  report_training(report, "train_adam", false, [](const auto& parameters) {
    return nn::Adam<>(parameters, 3e-3, {.weight_decay = 0.01});
  });
  report_training(report, "train_adamw", false,
                  [](const auto& parameters) { return nn::AdamW<>(parameters, 3e-3); });
}

void run(const std::filesystem::path& folder) {
  Report report;
  report_basic_layers(report);
  report_attention_layers(report);
  report_configured_layers(report);
  report_alignment_layers(report);
  report_all_training(report);
  report.write(folder);
}

}  // namespace

}  // namespace heed::probe

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: layers_probe FOLDER\n");
    return 2;
  }
  try {
    heed::probe::run(argv[1]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "layers_probe: {}\n", error.what());
    return 1;
  }
  return 0;
}
