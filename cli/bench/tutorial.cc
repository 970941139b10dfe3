// heed bench tutorial: the benchmark of the tutorial on attention from scratch, the manual version
// compared to the fused one.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "arguments.h"
#include "bench/bench_verbs.h"
#include "bench/forward_case.h"
#include "bench/operands.h"
#include "bench/outcome.h"
#include "bench/report.h"
#include "heed/attention/mask.h"
#include "heed/core/parallel.h"
#include "heed/nn/ops.h"

namespace heed::cli {

namespace {

// The tutorial's function: product, mask, softmax, product, each with a result matrix in memory.
// BLAS computes the products.
class ManualAttention {
 public:
  explicit ManualAttention(const Operands<float>& operands)
      : query_(to_tensor(operands.query())),
        transposed_key_(to_tensor(operands.key().permute({0, 1, 3, 2}))),
        value_(to_tensor(operands.value())),
        mask_(materialize_additive(causal(),
                                   {1, 1, operands.query().extent(2), operands.key().extent(2)})),
        scale_(1 / std::sqrt(static_cast<float>(operands.query().extent(3)))) {}

  Tensor<float> operator()() const {
    const nn::NoGrad no_grad;
    const nn::Variable<float> scores = scale_ * nn::matmul(query_, transposed_key_) + mask_;
    return nn::matmul(nn::softmax(scores), value_).value();
  }

 private:
  nn::Variable<float> query_;
  nn::Variable<float> transposed_key_;  // PyTorch's product reads it transposed without a copy
  nn::Variable<float> value_;
  nn::Variable<float> mask_;  // 0 and −∞
  float scale_;
};

template <class Call>
Outcome measure_method(const char* method, const ForwardCase& forward, const Call& call,
                       Progress& progress) {
  ReadyCase ready = make_ready([&call] { return call(); });
  Outcome& outcome = ready.outcome;
  outcome.description = {{"method", method}};
  outcome.description.update(describe(forward));
  outcome.description.erase("path");
  outcome.operations = operations(forward);
  const Sampling sampling{
      .threads = forward.threads, .warmups = 5, .repetitions = 20, .seconds_per_repetition = 0};
  return measure(sampling, std::move(ready), progress);
}

double largest_difference(const Tensor<float>& a, FloatView b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.elements().size(); ++i) {
    largest = std::max(largest, std::abs(double{a.elements()[i]} - double{b.elements()[i]}));
  }
  return largest;
}

void run_tutorial(int threads, const ReportOptions& options) {
  const ReportPrinter printer(options, "tutorial");
  ForwardCase forward;
  forward.q_len = forward.kv_len = 256;
  forward.causal = "square";
  forward.threads = threads == 0 ? num_threads() : threads;
  set_num_threads(forward.threads);  // plans are made for this number
  Operands<float> operands(forward);
  // Every weight is written to memory, as the tutorial's function does.
  const auto loops = [&] { return operands.attend_by_reference(reference::Keep::kWeights).out; };
  const ManualAttention manual(operands);
  const auto fused = [&] { return operands.attend(); };
  const double difference =
      std::max(largest_difference(loops(), fused()), largest_difference(manual(), fused()));
  std::vector<Outcome> outcomes;
  {
    Progress progress(3);
    outcomes.push_back(measure_method("loops", forward, loops, progress));
    outcomes.push_back(measure_method("manual", forward, manual, progress));
    outcomes.push_back(measure_method("fused", forward, fused, progress));
  }
  auto report = to_json(outcomes);
  const auto median = [&](int i) { return report["results"][i]["median_ms"].get<double>(); };
  report["speedup"] = median(1) / median(2);
  report["speedup_over_loops"] = median(0) / median(2);
  report["largest_difference"] = difference;
  printer.print(report, [&](const nlohmann::ordered_json& whole) {
    return to_table(whole) +
           fmt::format(
               "\nmanual {:.2f} ms per call, fused {:.2f} ms: {:.1f} times faster\n"
               "plain loops {:.2f} ms: {:.1f} times\n"
               "largest difference of the results: {:.1g}\n",
               median(1), median(2), median(1) / median(2), median(0), median(0) / median(2),
               difference);
  });
}

}  // namespace

void add_bench_tutorial(CLI::App& bench) {
  CLI::App* verb = bench.add_subcommand(
      "tutorial", "The tutorial's benchmark: attention by hand against fused attention");
  auto threads = std::make_shared<int>(0);
  auto report = std::make_shared<ReportOptions>();
  add_option(*verb, "--threads", *threads, "All the machine has, if not given")
      ->check(CLI::Range(1, 1024).description(""))
      ->type_name("N");
  add_report_options(*verb, *report);
  verb->footer(
      "Batch 1, 8 heads, 256 tokens, head_dim 64, causal; 5 warm-up calls, then 20 timed\n"
      "ones. 'manual' computes scores, softmax and output one after the other as whole\n"
      "matrices, the products by BLAS; 'loops' does so in plain loops.");
  verb->callback([threads, report] { run_tutorial(*threads, *report); });
}

}  // namespace heed::cli
