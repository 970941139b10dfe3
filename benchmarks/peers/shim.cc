// heed as C functions, for python/heed/bench/library.py to call.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "heed/attention.h"
#include "heed/attention/backward.h"
#include "heed/attention/mask.h"
#include "heed/attention/mask_text.h"
#include "heed/attention/plan.h"
#include "heed/core/parallel.h"
#include "heed/core/tensor.h"
#include "problem.h"

namespace {

// heed as a loop over layers uses it: a plan is made once and writes to existing memory.
class PlannedCall {
 public:
  // Makes a new plan if the problem differs from the last one.
  void prepare(const PeersProblem& problem) {
    const auto key = std::make_tuple(problem.num_heads, problem.length, problem.dim,
                                     std::string(problem.mask), heed::num_threads());
    if (plan_ && key == key_) return;
    heed::AttentionOptions options;
    options.mask = heed::parse_mask(problem.mask);
    plan_ = heed::plan({.num_heads = problem.num_heads,
                        .num_kv_heads = problem.num_heads,
                        .q_len = problem.length,
                        .kv_len = problem.length,
                        .head_dim = problem.dim,
                        .value_dim = problem.dim},
                       options);
    out_ = heed::Tensor<float>({1, problem.num_heads, problem.length, problem.dim});
    workspace_.resize(plan_->workspace_bytes());
    key_ = key;
  }

  void run(const PeersProblem& problem) {
    plan_->run_into({.out = out_, .workspace = workspace_}, view(problem.query), view(problem.key),
                    view(problem.value));
    if (problem.out == nullptr) return;
    std::copy(out_.elements().begin(), out_.elements().end(), problem.out);
  }

 private:
  heed::FloatView view(const float* data) const { return {data, out_.shape()}; }

  std::tuple<std::int64_t, std::int64_t, std::int64_t, std::string, int> key_;
  std::optional<heed::AttentionPlan> plan_;
  heed::Tensor<float> out_;
  std::vector<std::byte> workspace_;
};

// The gradients, after a forward pass.
class GradientsCall {
 public:
  // Runs the forward pass if the problem differs from the last one, or if results are wanted,
  // because then the tensors may have changed in place.
  void prepare(const PeersProblem& problem) {
    const auto key = std::make_tuple(problem.num_heads, problem.length, problem.dim,
                                     std::string(problem.mask), problem.query);
    if (problem.gradients == nullptr && key == key_) return;
    shape_ = {1, problem.num_heads, problem.length, problem.dim};
    options_.mask = heed::parse_mask(problem.mask);
    forward_ = heed::attention_for_backward(view(problem.query), view(problem.key),
                                            view(problem.value), options_);
    key_ = key;
  }

  void run(const PeersProblem& problem) const {
    const auto found =
        heed::attention_backward(view(problem.grad_out), view(problem.query), view(problem.key),
                                 view(problem.value), forward_, options_);
    if (problem.gradients == nullptr) return;
    float* to = problem.gradients;
    for (const auto* gradient : {&found.query, &found.key, &found.value}) {
      to = std::copy(gradient->elements().begin(), gradient->elements().end(), to);
    }
  }

 private:
  heed::FloatView view(const float* data) const { return {data, shape_}; }

  std::tuple<std::int64_t, std::int64_t, std::int64_t, std::string, const float*> key_;
  heed::Shape shape_;
  heed::AttentionOptions options_;
  heed::AttentionOutput<float> forward_;
};

}  // namespace

// For heed, and for the peers that loop over blocks.
extern "C" void peers_set_num_threads(int count) { heed::set_num_threads(count); }

extern "C" void peers_heed(const PeersProblem* problem) {
  static PlannedCall call;
  call.prepare(*problem);
  call.run(*problem);
}

extern "C" void peers_heed_backward(const PeersProblem* problem) {
  static GradientsCall call;
  call.prepare(*problem);
  call.run(*problem);
}
