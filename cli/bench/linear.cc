// heed bench linear: linear-time attention compared to softmax attention, in speed and results.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "bench/bench_verbs.h"
#include "bench/case_arguments.h"
#include "bench/outcome.h"
#include "bench/report.h"
#include "heed/attention.h"
#include "heed/attention/linear_attention.h"
#include "heed/core/parallel.h"
#include "heed/core/random.h"

namespace heed::cli {

namespace {

struct LinearArguments {
  Names mask{"none", "causal"};
  Numbers seq{256, 1024, 4096, 16384}, heads{8}, head_dim{64}, threads;
  int repetitions = 5;
  bool as_json = false;
};

struct LinearCase {
  bool causal;
  std::int64_t seq;
  std::int64_t heads;
  std::int64_t head_dim;
  int threads;

  double pairs() const {
    const auto length = static_cast<double>(seq);
    return causal ? length * (length + 1) / 2 : length * length;
  }
};

// Standard normal queries, keys and values. `unit_key` is `key` scaled to about length 1; decays
// are −0.1·|normal| and rates sigmoid(normal), as models make them.
struct LinearOperands {
  Tensor<float> query, key, value, unit_key, decay, beta;

  explicit LinearOperands(const LinearCase& one, TorchGenerator random = TorchGenerator(0))
      : query(random.randn({1, one.heads, one.seq, one.head_dim})),
        key(random.randn(query.shape())),
        value(random.randn(query.shape())),
        unit_key(key),
        decay(random.randn({1, one.heads, one.seq, 1})),
        beta(random.randn({1, one.heads, one.seq})) {
    for (float& g : decay.elements()) g = -0.1F * std::abs(g);
    for (float& rate : beta.elements()) rate = 1 / (1 + std::exp(-rate));
    const float length = std::sqrt(static_cast<float>(one.head_dim));
    for (float& x : unit_key.elements()) x /= length;
  }
};

// Returns √(Σ (a − b)² / Σ b²).
double relative_error(const Tensor<float>& a, const Tensor<float>& b) {
  double differences = 0;
  double squares = 0;
  for (std::size_t i = 0; i < a.elements().size(); ++i) {
    const double expected = b.elements()[i];
    differences += std::pow(a.elements()[i] - expected, 2);
    squares += expected * expected;
  }
  return std::sqrt(differences / squares);
}

// Measures the methods on one case, one after the other.
class LinearComparison {
 public:
  LinearComparison(const LinearCase& one, int repetitions, Progress& progress)
      : case_(one), operands_(one), repetitions_(repetitions), progress_(progress) {
    set_num_threads(one.threads);
    options_.mask = one.causal ? causal() : Mask();
    exact_ = attention(operands_.query, operands_.key, operands_.value, options_);
  }

  std::vector<Outcome> run() {
    const auto& in = operands_;
    const double per_pair = 4 * static_cast<double>(case_.head_dim);
    measure_method("softmax", case_.pairs() * per_pair, 0.0,
                   [&] { return attention(in.query, in.key, in.value, options_); });
    add_feature_map("elu+1", FeatureMap::kEluPlusOne);
    add_feature_map("relu", FeatureMap::kRelu);
    if (!case_.causal) return std::move(outcomes_);
    for (const bool gated : {false, true}) {
      for (const bool delta : {false, true}) {
        LinearAttentionOptions options;
        if (gated) options.decay = in.decay;
        if (delta) options.beta = in.beta;
        const char* name = gated ? (delta ? "gated delta" : "gated") : (delta ? "delta" : "linear");
        measure_method(name, (delta ? 6 : 4) * state_size(), std::nullopt, [&] {
          return linear_attention(in.query, in.unit_key, in.value, options).out;
        });
      }
    }
    return std::move(outcomes_);
  }

 private:
  // Returns the elements of the state times the number of tokens.
  double state_size() const {
    return static_cast<double>(case_.seq) * std::pow(static_cast<double>(case_.head_dim), 2);
  }

  void add_feature_map(const char* name, FeatureMap map) {
    const FeatureMapOptions options{.feature_map = map, .causal = case_.causal};
    const auto call = [&] {
      return feature_map_attention(operands_.query, operands_.key, operands_.value, options);
    };
    measure_method(name, 4 * state_size(), relative_error(call(), exact_), call);
  }

  template <class Call>
  void measure_method(const char* name, double operations_of_head, std::optional<double> error,
                      const Call& call) {
    ReadyCase ready = make_ready(call);
    Outcome& outcome = ready.outcome;
    outcome.description = {{"method", name},
                           {"mask", case_.causal ? "causal" : "none"},
                           {"heads", case_.heads},
                           {"seq", case_.seq},
                           {"head_dim", case_.head_dim},
                           {"threads", case_.threads}};
    outcome.description["error"] = nullptr;
    // Three significant digits suffice for a report.
    if (error) outcome.description["error"] = std::round(*error * 1e3) / 1e3;
    outcome.operations = operations_of_head * static_cast<double>(case_.heads);
    const Sampling sampling{.threads = case_.threads, .warmups = 1, .repetitions = repetitions_};
    outcomes_.push_back(measure(sampling, std::move(ready), progress_));
  }

  LinearCase case_;
  LinearOperands operands_;
  int repetitions_;
  Progress& progress_;
  AttentionOptions options_;
  Tensor<float> exact_;
  std::vector<Outcome> outcomes_;
};

std::vector<LinearCase> cases_of(const LinearArguments& arguments) {
  std::vector<LinearCase> cases;
  for (const std::int64_t threads : arguments.threads)
    for (const std::int64_t head_dim : arguments.head_dim)
      for (const std::int64_t heads : arguments.heads)
        for (const std::string& mask : arguments.mask)
          for (const std::int64_t seq : arguments.seq)
            cases.push_back({mask == "causal", seq, heads, head_dim, static_cast<int>(threads)});
  return cases;
}

void run_linear(LinearArguments arguments) {
  if (arguments.threads.empty()) arguments.threads = {num_threads()};
  const std::vector<LinearCase> cases = cases_of(arguments);
  int total = 0;
  for (const LinearCase& one : cases) total += one.causal ? 7 : 3;
  std::vector<Outcome> outcomes;
  {
    Progress progress(total);
    for (const LinearCase& one : cases) {
      for (Outcome& outcome : LinearComparison(one, arguments.repetitions, progress).run()) {
        outcomes.push_back(std::move(outcome));
      }
    }
  }
  print_report(arguments.as_json, "linear", to_json(outcomes),
               [](const nlohmann::ordered_json& report) { return to_table(report); });
}

}  // namespace

void add_bench_linear(CLI::App& bench) {
  CLI::App* verb = bench.add_subcommand(
      "linear", "Attention in linear time beside softmax attention: speed and difference");
  auto arguments = std::make_shared<LinearArguments>();
  constexpr std::int64_t kMost = std::int64_t{1} << 20;
  add_numbers(*verb, "--seq", arguments->seq, kMost,
              "How many queries, and keys; 256,1024,4096,16384");
  add_numbers(*verb, "--heads", arguments->heads, kMost, "8");
  add_numbers(*verb, "--head-dim", arguments->head_dim, 65536, "64");
  add_names(*verb, "--mask", arguments->mask, {"none", "causal"}, "none,causal");
  add_numbers(*verb, "--threads", arguments->threads, 1024, "All the machine has, if not given");
  add_option(*verb, "--repeat", arguments->repetitions, "How often each case is measured")
      ->check(CLI::Range(1, 1000000).description(""))
      ->type_name("N")
      ->capture_default_str();
  add_report_options(*verb, arguments->as_json);
  verb->footer(
      "'softmax' is attention, 'elu+1' and 'relu' feature_map_attention, and where a query\n"
      "sees no later key, 'linear', 'gated', 'delta' and 'gated delta' the rules of\n"
      "linear_attention. 'error' is how far a feature map's result is from attention's on\n"
      "the same normal numbers: the root of the mean square of the difference, relative to\n"
      "that of the result. Operations are 4 pairs head_dim of the softmax, and 4 head_dim\n"
      "head_dim a token (6 with the delta rule) of the others. Results are allocated.");
  verb->callback([arguments] { run_linear(*arguments); });
}

}  // namespace heed::cli
