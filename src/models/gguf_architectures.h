// What the architectures of GGUF files differ in.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "heed/models/config.h"
#include "io/gguf_keys.h"

namespace heed { inline namespace v0 { namespace models {

// How an architecture turns queries and keys.
enum class Rotary {
  kNone,
  kHalves,      // rows of query and key have the order of transformers
  kNeighbours,  // they have the order for turning adjacent dimensions
};

// The experts of an architecture.
enum class ExpertRule {
  kNone,
  kPossible,  // if expert_count says so: Mixtral
  kAlways,    // of a size of their own
};

struct Architecture;
// The configuration of most architectures, as their row of the table says.
ModelConfig common_config(io::GgufKeys& keys, const Architecture& architecture);

// What architectures differ in.
struct Architecture {
  std::string_view name;
  Family family;
  // Heads divide the embedding and share no keys; no key of the file may say otherwise.
  bool has_plain_heads = false;
  bool sees_later_tokens = false;
  Rotary rotary = Rotary::kHalves;
  bool turns_parts = false;  // part of each head may be turned
  ExpertRule experts = ExpertRule::kNone;
  bool order_key_counts = true;  // use_parallel_residual is right
  NormKind norms = NormKind::kRms;
  HeadNorms head_norms = HeadNorms::kNone;
  Activation activation = Activation::kSilu;
  Biases biases = {};           // those that its files have
  Biases possible_biases = {};  // those that they may have
  ModelConfig (*read)(io::GgufKeys&, const Architecture&) = common_config;
};

std::span<const Architecture> architectures();

// The sizes that every architecture has. Throws FormatError naming a key.
ModelConfig sizes_of(io::GgufKeys& keys, const Architecture& architecture);

}}}  // namespace heed::v0::models
