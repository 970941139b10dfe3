// heed bench storage: the error of a saved model when keys and values are stored in fewer bits.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "bench/bench_verbs.h"
#include "bench/report.h"
#include "heed/attention/kv_cache.h"
#include "heed/core/error.h"
#include "heed/core/random.h"
#include "heed/models/character_model.h"
#include "heed/nn/ops.h"
#include "heed/tasks/shipped_text.h"
#include "heed/train/text_loss.h"
#include "input_text.h"
#include "train/settings.h"

namespace heed::cli {

namespace {

using Json = nlohmann::ordered_json;

// More sequences do not change the result.
constexpr std::size_t kSequences = 32;

struct StorageArguments {
  std::string model;
  std::string text_file;
  bool as_json = false;
};

// The deviation of numbers from those of float32, over all that were added.
class Deviation {
 public:
  void add(std::span<const float> found, std::span<const float> exact) {
    for (std::size_t i = 0; i < exact.size(); ++i) {
      const double error = double{found[i]} - double{exact[i]};
      squares_ += error * error;
      exact_squares_ += double{exact[i]} * double{exact[i]};
      largest_ = std::max(largest_, std::abs(error));
      exact_largest_ = std::max(exact_largest_, std::abs(double{exact[i]}));
    }
  }

  // The root mean square error and the largest error, each divided by that of the exact numbers.
  double rms() const { return std::sqrt(squares_ / exact_squares_); }
  double largest() const { return largest_ / exact_largest_; }

 private:
  double squares_ = 0;
  double exact_squares_ = 0;
  double largest_ = 0;
  double exact_largest_ = 0;
};

// The operands of attention in one layer, for one sequence.
struct LayerOperands {
  Tensor<float> query;  // [1, num_heads, length, head_dim]
  KvTensors cached;     // [num_heads, length, head_dim]
};

// The effect of a storage on the numbers of one layer.
struct LayerDeviation {
  Deviation key, value, out;

  void add(const LayerOperands& operands, KvStorage storage) {
    const KvTensors& exact = operands.cached;
    const auto filled = [&](KvStorage kept_as) {
      KvSequence sequence({.num_kv_heads = exact.key.extent(0),
                           .head_dim = exact.key.extent(2),
                           .key_storage = kept_as,
                           .value_storage = kept_as});
      sequence.append(exact.key, exact.value);
      return sequence;
    };
    const KvSequence sequence = filled(storage);
    const KvTensors stored = sequence.dequantised();
    key.add(stored.key.elements(), exact.key.elements());
    value.add(stored.value.elements(), exact.value.elements());
    const AttentionOptions options{.mask = causal()};
    const Tensor<float> found = attend(operands.query, sequence, options);
    const Tensor<float> right = attend(operands.query, filled(KvStorage::kFloat32), options);
    out.add(found.elements(), right.elements());
  }
};

nn::Past past_of(const models::CausalTransformer& model, KvStorage storage) {
  nn::Past past = model.make_past();
  for (std::int64_t i = 0; i < past.num_layers(); ++i) {
    KvSequence& layer = past.layer(i).front();
    KvConfig config = layer.config();
    config.key_storage = config.value_storage = storage;
    layer = KvSequence(config);
  }
  return past;
}

// Tokens and the token after each.
struct Piece {
  Tensor<std::int64_t> inputs;  // [1, context]
  Tensor<std::int64_t> targets;
};

// Returns consecutive parts of the text in `text_file`. Without a file they are of the held-out
// part of the text that heed ships.
std::vector<Piece> pieces_of(const models::CharacterModel& saved, const std::string& text_file) {
  const bool is_shipped = text_file.empty();
  const train::HeldOutText text(
      saved.characters, is_shipped ? std::string(tasks::shipped_text()) : read_input(text_file));
  const train::Ids ids = is_shipped ? text.held_out() : train::Ids(text.ids);
  const auto length = static_cast<std::size_t>(saved.config.context);
  std::vector<Piece> pieces;
  for (std::size_t first = 0; first + length < ids.size() && pieces.size() < kSequences;
       first += length) {
    const Shape shape{1, saved.config.context};
    Piece& piece =
        pieces.emplace_back(Piece{Tensor<std::int64_t>(shape), Tensor<std::int64_t>(shape)});
    std::copy_n(ids.data() + first, length, piece.inputs.data());
    std::copy_n(ids.data() + first + 1, length, piece.targets.data());
  }
  if (pieces.empty()) {
    throw InvalidArgument(
        fmt::format("the text has {} characters, expected at least {}: a context "
                    "and the character after it",
                    text.ids.size(), length + 1));
  }
  return pieces;
}

std::vector<LayerOperands> operands_of(models::CausalTransformer& model, const Piece& piece) {
  std::vector<LayerOperands> layers;
  {
    const nn::AttentionObserver<> observer(
        model, [&](const std::string&, const nn::AttentionCall<float>& call) {
          layers.push_back({to_tensor(call.query), {}});
        });
    model.forward(piece.inputs);
  }
  nn::Past past = model.make_past();
  model.continued(past, piece.inputs);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    layers[i].cached = past.layer(static_cast<std::int64_t>(i)).front().dequantised();
  }
  return layers;
}

// Returns standard normal numbers of the same shapes.
LayerOperands normal_like(const LayerOperands& operands, TorchGenerator& random) {
  return {random.randn(operands.query.shape()),
          {random.randn(operands.cached.key.shape()), random.randn(operands.cached.value.shape())}};
}

double loss_of(models::CausalTransformer& model, const std::vector<Piece>& pieces,
               KvStorage storage) {
  double sum = 0;
  for (const Piece& piece : pieces) {
    nn::Past past = past_of(model, storage);
    const nn::Variable<> logits = model.continued(past, piece.inputs);
    sum += double{nn::cross_entropy(logits, TensorView(piece.targets.view())).item()};
  }
  return sum / static_cast<double>(pieces.size());
}

Json describe(KvStorage storage, const std::string& layer, const LayerDeviation& deviation,
              double loss) {
  return {{"case", {{"storage", to_string(storage)}, {"layer", layer}}},
          {"key", deviation.key.rms()},
          {"value", deviation.value.rms()},
          {"out", deviation.out.rms()},
          {"largest", deviation.out.largest()},
          {"loss", loss}};
}

Json measure(models::CausalTransformer& model, const std::vector<Piece>& pieces) {
  std::vector<std::vector<LayerOperands>> layers;  // one list of layers per piece
  TorchGenerator random(0);
  for (const Piece& piece : pieces) {
    layers.push_back(operands_of(model, piece));
    layers.back().push_back(normal_like(layers.back().front(), random));
  }
  auto results = Json::array();
  for (const KvStorage storage : kKvStorages) {
    const double loss = loss_of(model, pieces, storage);
    for (std::size_t i = 0; i < layers.front().size(); ++i) {
      LayerDeviation deviation;
      for (const auto& of_piece : layers) deviation.add(of_piece[i], storage);
      const bool is_last = i + 1 == layers.front().size();
      results.push_back(
          describe(storage, is_last ? "normal" : fmt::format("{}", i), deviation, loss));
    }
  }
  return results;
}

std::string table_of(const Json& report) {
  std::vector<std::vector<std::string>> rows{
      {"storage", "layer", "key", "value", "out", "largest", "loss"}};
  for (const Json& result : report["results"]) {
    const Json& one = result["case"];
    const bool is_first = one["storage"] != rows.back().front();
    std::vector<std::string> row{one["storage"], one["layer"]};
    for (const char* name : {"key", "value", "out", "largest"}) {
      row.push_back(fmt::format("{:.2g} %", 100 * result[name].get<double>()));
    }
    row.push_back(is_first ? fmt::format("{:.5f}", result["loss"].get<double>()) : "");
    rows.push_back(std::move(row));
  }
  const auto sequences = report["sequences"].get<std::size_t>();
  return fmt::format("{} sequence{} of {} characters, {} heads of {}\n\n", sequences,
                     sequences == 1 ? "" : "s", report["length"].get<std::int64_t>(),
                     report["heads"].get<std::int64_t>(), report["head_dim"].get<std::int64_t>()) +
         aligned(rows);
}

void run_storage(const StorageArguments& arguments) {
  const models::CharacterModel saved = models::load_character_model(arguments.model, kOptionNames);
  const std::vector<Piece> pieces = pieces_of(saved, arguments.text_file);
  const nn::NoGrad no_grad;
  saved.model->eval();
  const Json report{{"sequences", pieces.size()},
                    {"length", saved.config.context},
                    {"heads", saved.config.heads},
                    {"head_dim", saved.config.d_model / saved.config.heads},
                    {"results", measure(*saved.model, pieces)}};
  print_report(arguments.as_json, "storage", report,
               [](const Json& whole) { return table_of(whole); });
}

}  // namespace

void add_bench_storage(CLI::App& bench) {
  CLI::App* verb = bench.add_subcommand(
      "storage", "Measure what keys and values in fewer bits cost a saved model");
  auto arguments = std::make_shared<StorageArguments>();
  add_option(*verb, "--model", arguments->model,
             "The folder that `heed train lm --save` named, or a file of it")
      ->required()
      ->type_name("DIR");
  add_option(*verb, "--text", arguments->text_file,
             "What the model reads, in UTF-8; if not given, the part of its story that it never "
             "learned")
      ->type_name("FILE");
  add_report_options(*verb, arguments->as_json);
  verb->footer(
      "The model reads up to 32 sequences. Of each layer, what the keys and the values\n"
      "become and what attention makes of them is compared with float32: the root of the\n"
      "mean square of the error by that of the exact numbers, and its largest by the\n"
      "largest of these. 'normal' is as many numbers from the standard normal distribution.\n"
      "The loss is that of the model whose layers all keep keys and values so, in nats a\n"
      "character.");
  verb->callback([arguments] { run_storage(*arguments); });
}

}  // namespace heed::cli
