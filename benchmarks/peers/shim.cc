// heed and the probes of the machine as C functions, for compare.py to call.
#include <algorithm>
#include <cstdint>
#include <string>

#include "bench/probe.h"
#include "heed/attention.h"
#include "heed/config.h"
#include "heed/parallel.h"
#include "problem.h"

// For heed, for the probes, and for the peers that are loops over blocks.
extern "C" void peers_set_num_threads(int count) { heed::set_num_threads(count); }

extern "C" void peers_probe(int threads, double* fma_rate, double* product_seconds) {
  const heed::cli::Probe probe = heed::cli::probe_machine(threads);
  *fma_rate = probe.fma_rate;
  *product_seconds = probe.product_seconds;
}

extern "C" void peers_settle(int threads) { heed::cli::settle_machine(threads); }

extern "C" const char* peers_version() { return heed::version(); }

extern "C" const char* peers_attention_target() {
  static const std::string name = heed::attention_target();
  return name.c_str();
}

extern "C" void peers_heed(const PeersProblem* problem) {
  const heed::Shape shape{1, problem->num_heads, problem->length, problem->dim};
  heed::AttentionOptions options;
  if (problem->is_causal != 0) options.mask = heed::causal();
  const auto out =
      heed::attention(heed::FloatView(problem->query, shape), heed::FloatView(problem->key, shape),
                      heed::FloatView(problem->value, shape), options);
  if (problem->out == nullptr) return;
  std::copy(out.elements().begin(), out.elements().end(), problem->out);
}
