// The families that are variations of Llama: what they differ in, and a reader of configurations
// that goes by it. The defaults are those of the configuration classes of transformers 5.
#pragma once

#include <cstdint>
#include <string_view>

#include "heed/models/config.h"
#include "models/config_reading.h"

namespace heed { inline namespace v0 { namespace models {

// The biases of products.
enum class BiasRule {
  kRead,           // attention_bias and mlp_bias say
  kReadAttention,  // attention_bias says; the feed-forward layer has none
  kInputs,         // of query, key and value alone
  kNone,
  kOwn,  // `read_own` says
};

// The layers that have a window.
enum class WindowRule {
  kNone,
  kAll,    // all if there is sliding_window
  kAsked,  // all if use_sliding_window is true
  kTyped,  // those that layer_types or max_window_layers names, if use_sliding_window is true
};

// What the families differ in. Missing members of a file have these values; 0 stands for the
// general one.
struct Kind {
  std::string_view name;
  Family family = Family::kLlama;
  std::int64_t max_positions = 2048;
  std::int64_t num_kv_heads = 0;  // 0: as many as heads
  std::int64_t head_dim = 0;      // 0: hidden_size / num_heads
  std::int64_t window = 0;        // 0: none
  double epsilon = 1e-6;
  bool is_tied = false;
  bool has_plain_heads = false;  // files do not say how long heads are, and heads share no keys
  const char* epsilon_key = "rms_norm_eps";
  const char* activation = "silu";
  NormKind norms = NormKind::kRms;
  HeadNorms head_norms = HeadNorms::kNone;
  PartOrder part_order = PartOrder::kInTurn;
  BiasRule biases = BiasRule::kRead;
  WindowRule windows = WindowRule::kNone;
  RotaryRules rotary = {};
  // Reads the members that the family alone has. The layers are there, without windows.
  void (*read_own)(ConfigFields& fields, ModelConfig& config) = nullptr;
};

ModelConfig kind_config(ConfigFields& fields, const Kind& kind);

}}}  // namespace heed::v0::models
