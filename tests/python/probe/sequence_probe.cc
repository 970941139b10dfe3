// sequence_probe FOLDER: like layers_probe, for LSTMs and models of them.
// tests/python/test_sequence.py does the same in PyTorch.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

#include "heed/heed.h"
#include "report.h"

namespace heed::probe { namespace {

using Lengths = std::vector<std::int64_t>;

// Uses x [4, 7, 5] and, with `has_start`, initial states of `num_states` layers and directions.
void report_lstm(Report& report, const std::string& name, const nn::LstmOptions& options,
                 const Lengths& lengths, bool has_start) {
  set_seed(0);
  nn::LSTM<> lstm(5, 6, options);
  const std::int64_t num_states = options.num_layers * lstm.num_directions();
  std::vector<Variable<float>> inputs{draw({4, 7, 5})};
  nn::LstmState<float> start;
  if (has_start) {
    start = {draw({num_states, 4, 6}), draw({num_states, 4, 6})};
    inputs.insert(inputs.end(), {start.hidden, start.cell});
  }
  report_layer(report, name, lstm, inputs, [&] {
    const auto [out, state] = lstm.forward(inputs.front(), lengths, start);
    report.add(name + "/hidden", state.hidden.value());
    report.add(name + "/cell", state.cell.value());
    const auto flat = [](const Variable<float>& x) { return reshape(x, {x.num_elements()}); };
    return nn::concat<float>({flat(out), flat(state.hidden), flat(state.cell)});
  });
}

void report_lstms(Report& report) {
  report_lstm(report, "lstm", {}, {}, false);
  report_lstm(report, "lstm_no_bias", {.bias = false}, {}, true);
  report_lstm(report, "lstm_layers", {.num_layers = 3}, {7, 3, 1, 6}, true);
  report_lstm(report, "lstm_bidirectional", {.bidirectional = true}, {2, 7, 7, 1}, true);
  report_lstm(report, "lstm_both", {.num_layers = 2, .bidirectional = true}, {5, 1, 7, 4}, false);
}

constexpr std::int64_t kSrcVocabulary = 13;
constexpr std::int64_t kTgtVocabulary = 11;
const Lengths kLengths{6, 2, 9, 5};

// Trains for 50 steps on the same batch of targets; a target of 0 does not count.
void report_training(Report& report, const std::string& name, nn::Seq2Seq<>& model,
                     const Tensor<std::int64_t>& src, const Lengths& lengths) {
  const auto tgt = default_generator().randint(0, kTgtVocabulary, {4, 8});
  const auto inputs = to_tensor(tgt.view().slice(1, 0, 7));
  const auto targets = to_tensor(tgt.view().slice(1, 1, 8));
  nn::Sgd<> optimizer(model.parameters(), 0.01, {.momentum = 0.9});
  Tensor<float> losses({50});
  for (std::int64_t step = 0; step < 50; ++step) {
    optimizer.zero_grad();
    const auto logits = model.forward(src, inputs, lengths).logits;
    const Variable<float> loss = nn::cross_entropy<float>(logits, targets, 0);
    loss.backward();
    nn::clip_grad_norm(model.parameters(), 1);
    optimizer.step();
    losses(step) = loss.item();
  }
  report.add(name + "/losses", losses);
}

template <class Model, class Config>
void report_model(Report& report, const std::string& name, const Config& config,
                  const Lengths& lengths) {
  set_seed(0);
  Model model(config);
  const auto src = default_generator().randint(0, kSrcVocabulary, {4, 9});
  const auto tgt = default_generator().randint(0, kTgtVocabulary, {4, 5});
  report_layer(report, name, model, {}, [&] {
    auto [logits, weights, state] = model.forward(src, tgt, lengths);
    if (weights.num_elements() != 0) report.add(name + "/weights", weights);
    return logits;
  });
  model.zero_grad();
  report_training(report, name, model, src, lengths);
}

void report_models(Report& report) {
  nn::AttentionSeq2SeqConfig config{.src_vocab_size = kSrcVocabulary,
                                    .tgt_vocab_size = kTgtVocabulary,
                                    .d_model = 16,
                                    .num_heads = 4,
                                    .num_layers = 2,
                                    .dropout = 0};
  report_model<nn::AttentionSeq2Seq<>>(report, "multihead", config, {});
  report_model<nn::AttentionSeq2Seq<>>(report, "multihead_packed", config, kLengths);
  config.packs_source = false;
  report_model<nn::AttentionSeq2Seq<>>(report, "multihead_masked", config, kLengths);
  const std::pair<const char*, nn::SourceAttention> kinds[] = {
      {"none", nn::SourceAttention::kNone},
      {"additive", nn::SourceAttention::kAdditive},
      {"dot", nn::SourceAttention::kDot},
      {"general", nn::SourceAttention::kGeneral},
      {"concat", nn::SourceAttention::kConcat}};
  for (const auto& [name, attention] : kinds) {
    report_model<nn::RecurrentSeq2Seq<>>(
        report, name,
        nn::RecurrentSeq2SeqConfig{.src_vocab_size = kSrcVocabulary,
                                   .tgt_vocab_size = kTgtVocabulary,
                                   .d_model = 16,
                                   .num_layers = 2,
                                   .attention = attention,
                                   .dropout = 0},
        kLengths);
  }
}

}  // namespace

}  // namespace heed::probe

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: sequence_probe FOLDER\n");
    return 2;
  }
  try {
    heed::probe::Report report;
    heed::probe::report_lstms(report);
    heed::probe::report_models(report);
    report.write(argv[1]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "sequence_probe: {}\n", error.what());
    return 1;
  }
  return 0;
}
