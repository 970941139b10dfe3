// Makes seals: hashes what a computation reads and what it computes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/config.h"
#include "heed/core/tensor.h"
#include "heed/models/generate.h"
#include "heed/models/model.h"
#include "heed/models/seal.h"
#include "io/sha256.h"

namespace heed { inline namespace v0 { namespace models {

inline constexpr std::size_t kModelDigits = 16;
inline constexpr std::size_t kShortDigits = 8;
inline constexpr std::size_t kAllDigits = 22;

// The first `count` digits of base64url of the bytes.
HEED_API std::string base64(std::span<const std::byte> bytes, std::size_t count);
// The parts of a seal that are known before the computation, as in its text.
std::string inputs_text(const Seal& seal);

// A seal with all that is known before the computation.
HEED_API Seal begun_seal(const Model& model, std::span<const std::int64_t> prompt,
                         const GenerateOptions& options);
HEED_API Seal begun_seal(const Model& model, std::span<const std::string> texts);
// The differences between parts that are known before the computation.
HEED_API std::vector<SealDifference> input_differences(const Seal& expected, const Seal& found);

// Seals a text as it is generated.
class TextSealer {
 public:
  TextSealer(const Model& model, std::span<const std::int64_t> prompt,
             const GenerateOptions& options);

  // Takes the logits and the token that was chosen of them.
  void add(std::span<const float> logits, std::int64_t id);
  Seal finish(std::string_view text, EndReason reason);

 private:
  Seal seal_;
  std::string model_;         // the hash of its files
  io::Sha256Digest input_;    // of the ids of the prompt
  io::Sha256Digest steps_{};  // of all logits and choices so far
};

// Seals vectors [texts.size(), n].
Seal sealed_vectors(const Model& model, std::span<const std::string> texts, FloatView vectors);

}}}  // namespace heed::v0::models
