// What reads a model's configuration: JSON in which every member must be accounted for, the parts
// of a folder's configuration that have files of their own, and the checks of any kind of file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "heed/models/config.h"
#include "io/json_value.h"
#include "io/text_file.h"

namespace heed { inline namespace v0 { namespace models {

// Owns the text and the tree that its parts refer to.
class JsonDocument {
 public:
  // Throws FormatError if the file is not JSON, IoError if it cannot be read.
  explicit JsonDocument(const std::filesystem::path& path)
      : file_(path.string()), value_(io::parse_json(io::read_text_file(path), file_)) {}
  io::JsonPart root() const { return {file_, value_}; }

 private:
  std::string file_;
  io::JsonValue value_;
};

// An object of a JSON file, and a record of the members that were read. Except for has(), a member
// that is null counts as missing. All functions throw FormatError naming the file and the member.
class ConfigFields {
 public:
  explicit ConfigFields(io::JsonPart object);

  const io::JsonPart& json() const noexcept { return object_; }
  const std::string& file() const noexcept { return object_.file(); }

  // True if the member exists, even if it is null. This does not count as reading it.
  bool has(std::string_view key) const;

  std::optional<io::JsonPart> find(std::string_view key);
  io::JsonPart at(std::string_view key);
  std::int64_t integer(std::string_view key) { return at(key).integer(); }
  double number(std::string_view key) { return at(key).number(); }
  bool boolean_or(std::string_view key, bool otherwise);
  std::int64_t integer_or(std::string_view key, std::int64_t otherwise);
  double number_or(std::string_view key, double otherwise);
  std::string string_or(std::string_view key, std::string_view otherwise);

  // Requires a value, for members that heed supports with one value only. A missing member is
  // accepted.
  // @param why the reason to refuse other values: "heed has no decoders of BERT"
  void expect(std::string_view key, bool value, std::string_view why);
  void expect(std::string_view key, std::int64_t value, std::string_view why);
  void expect(std::string_view key, double value, std::string_view why);
  void expect(std::string_view key, const char* value, std::string_view why);
  // Requires a member that is missing, null, false, 0, "", [] or {}.
  void expect_nothing(std::string_view key, std::string_view why);

  // Accepts members that no result depends on.
  void ignore(std::span<const std::string_view> keys);
  // Refuses members that were not read: they may change the result.
  void check_all_known() const;

 private:
  [[noreturn]] static void refuse(const io::JsonPart& found, std::string_view expected,
                                  std::string_view why);

  io::JsonPart object_;
  std::set<std::string, std::less<>> known_;
};

// Members of config.json, for any family.
std::span<const std::string_view> keys_without_effect();

// Members of generation_config.json, and of config.json of earlier versions of transformers, that
// control sampling. Callers of generate() set that themselves.
std::span<const std::string_view> keys_of_generation();

// What families differ in where they say how heads are turned.
struct RotaryRules {
  double base = 10000;  // where the file has none
  // The part of each head that is turned where the file does not say; nullopt: heads are turned
  // whole, and nothing else may be said.
  std::optional<double> fraction = std::nullopt;
  const char* base_key = "rope_theta";
  const char* fraction_key = "partial_rotary_factor";
  RotaryPairing pairing = RotaryPairing::kHalves;
  // Phi-3: no scaling but LongRoPE, which has other names as well, from this length on unless the
  // configuration itself has another one.
  std::optional<std::int64_t> long_rope_from = std::nullopt;
};

// Reads them as transformers 5 does: rope_parameters holds all settings; earlier files have
// rope_theta and rope_scaling instead.
// @param config must hold head_dim and max_positions
RotaryPositions read_rotary(ConfigFields& fields, const ModelConfig& config,
                            const RotaryRules& rules = {});

// Reads those of the layers of one type, "full_attention" or "sliding_attention": rope_parameters
// has an object for each; earlier files have `rules.base_key`, and rope_scaling for the first type.
RotaryPositions read_rotary_of(ConfigFields& fields, const ModelConfig& config,
                               const char* layer_type, const RotaryRules& rules);

// The folder of the transformer: a subfolder if modules.json names one, otherwise `folder`.
std::filesystem::path transformer_folder(const std::filesystem::path& folder);

// Returns the mean if there is no modules.json.
// @param hidden_size of the transformer
// @throws FormatError naming a module or a member that requests something heed lacks.
Pooling read_pooling(const std::filesystem::path& folder, std::int64_t hidden_size);

// The number of layers, or a number in range if that is none: check_config() refuses it later.
std::size_t num_layers_to_describe(const ModelConfig& config);

// Throws FormatError, naming `file`, if a size is not positive or out of range, heads do not
// divide, or a setting of the family is missing.
void check_config(const ModelConfig& config, const std::string& file);

}}}  // namespace heed::v0::models
