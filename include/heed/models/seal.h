/// Seals: short texts that identify every bit of a computation with a trained model, so that
/// another machine can say whether it computes the same.
///
///     heed::models::Seal seal;
///     generate(model, "Once upon a time", {.max_tokens = 40, .seal = &seal});
///     std::cout << to_string(seal) << '\n';
///     const auto expected = heed::models::parse_seal(published);
///     for (const auto& difference : seal_differences(expected, seal)) {
///       std::cout << difference.text << '\n';
///     }
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/config.h"

namespace heed { inline namespace v0 { namespace models {

/// What a seal is of.
enum class SealKind { kGenerate, kEmbed };

/// The name of a kind, which the seal contains: "generate" or "embed".
HEED_API std::string_view to_string(SealKind kind);

/// An option that differs from its default, as a seal spells it.
struct SealOption {
  std::string name;   ///< short: "n" is max_tokens
  std::string value;  ///< a number in the fewest digits that give it back, a name, or a hash

  friend bool operator==(const SealOption&, const SealOption&) = default;
};

/// Hashes of a computation: SHA-256 of its parts, cut to the given lengths. docs/models.md defines
/// each. Numbers of threads, and how work is divided, have no part in a seal.
struct Seal {
  SealKind kind = SealKind::kGenerate;
  std::string model = {};  ///< of the model's files (Model::sha256), 16 hexadecimal digits
  std::string input = {};  ///< of the prompt's ids, or of the texts, 8 digits
  std::vector<SealOption> options = {};
  std::string output = {};  ///< of the text and the reason of its end, or of all vectors, 8 digits
  /// Two characters of base64url for each token that was chosen, also for the one that ended the
  /// text: of its logits and all before, and of the same with the choice. For each vector: two
  /// characters of it alone.
  std::string steps = {};
  std::string all = {};  ///< of all these in full length, 22 characters: 128 bits

  friend bool operator==(const Seal&, const Seal&) = default;
};

/// The seal as one word: "heed1:KIND:MODEL:INPUT:OPTIONS:OUTPUT:STEPS:ALL:CHECK". CHECK shows
/// whether a seal was copied as it is.
HEED_API std::string to_string(const Seal& seal);
/// Reads a seal; spaces and line breaks in it are skipped, as mails break long lines.
/// @throws InvalidArgument when it is no seal of this version, or was changed or cut.
HEED_API Seal parse_seal(std::string_view text);

/// A part of a computation that a seal covers.
enum class SealPart {
  kKind,
  kModel,
  kInput,
  kOption,
  kLogits,   ///< of the token `index`, or of one before it with a probability of 1 in 4096
  kChoice,   ///< the token `index` is another one, with a probability of 63 in 64 of equal logits
  kLength,   ///< the number of tokens or vectors
  kVectors,  ///< the vector of the text `index`
  kOutput,   ///< the text, or why it ended; the vectors
  kAll,      ///< a difference that the short hashes of the parts do not show
};

/// The name of a part: "kind", "model", "input", "option", "logits", "choice", "length", "vectors",
/// "output" or "all".
HEED_API std::string_view to_string(SealPart part);

/// A difference between two seals.
struct SealDifference {
  SealPart part = SealPart::kAll;
  std::int64_t index = -1;  ///< of the token or text, counted from 0; −1 for other parts
  std::string text = {};    ///< as a sentence: "the logits differ from token 3 on, of 40"
};

/// How a computation differs from the one that was sealed; empty where every bit is the same. Of
/// the tokens of a text only the first that differs is listed, of vectors each.
HEED_API std::vector<SealDifference> seal_differences(const Seal& expected, const Seal& found);

}}}  // namespace heed::v0::models
