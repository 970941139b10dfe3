#include "heed/models/seal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "core/printable.h"
#include "heed/core/error.h"
#include "models/sealing.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

constexpr std::string_view kVersion = "heed1";
constexpr std::size_t kNumParts = 9;
constexpr std::size_t kCheckSize = 4;

// A longer text is no seal: ten million tokens or texts.
constexpr std::size_t kMostBytes = 20'001'000;
constexpr std::size_t kMostOptionBytes = 64;

struct OptionName {
  SealKind kind;
  std::string_view name;  // in seals
  std::string_view meaning;
  std::string_view otherwise;  // the value that is meant where a seal does not have the option
};
// In the order of seals.
constexpr std::array<OptionName, 16> kOptionNames{
    {{SealKind::kGenerate, "n", "max_tokens", "none"},
     {SealKind::kGenerate, "t", "temperature", "0"},
     {SealKind::kGenerate, "k", "top_k", "0"},
     {SealKind::kGenerate, "p", "top_p", "1"},
     {SealKind::kGenerate, "s", "seed", "0"},
     {SealKind::kGenerate, "m", "min_p", "0"},
     {SealKind::kGenerate, "r", "repetition_penalty", "1"},
     {SealKind::kGenerate, "key", "the storage of keys", "float32"},
     {SealKind::kGenerate, "value", "the storage of values", "float32"},
     {SealKind::kGenerate, "stop", "the hash of the stop texts", "none"},
     {SealKind::kGenerate, "bias", "the hash of the biases of logits", "none"},
     {SealKind::kGenerate, "end", "the hash of the tokens that end the text", "none"},
     {SealKind::kEmbed, "pool", "pooling", "mean"},
     {SealKind::kEmbed, "norm", "normalisation", "0"},
     {SealKind::kEmbed, "max", "the most tokens of a text", "none"},
     {SealKind::kEmbed, "prompt", "the hash of the prompt before each text", "none"}}};

// The index of an option in kOptionNames; its size if there is none.
std::size_t index_of_option(SealKind kind, std::string_view name) {
  const auto found = std::find_if(
      kOptionNames.begin(), kOptionNames.end(),
      [&](const OptionName& option) { return option.kind == kind && option.name == name; });
  return static_cast<std::size_t>(found - kOptionNames.begin());
}

std::string options_text(const Seal& seal) {
  std::string text;
  for (const auto& [name, value] : seal.options) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, value);
  }
  return text;
}

std::string check_of(std::string_view text) {
  return base64(io::Sha256().add(text).finish(), kCheckSize);
}

[[noreturn]] void refuse_seal(const std::string& problem) {
  throw InvalidArgument("parse_seal: " + problem);
}

std::string quoted_part(std::string_view text) {
  constexpr std::size_t kLongest = 40;
  return io::printable(text.substr(0, kLongest)) + (text.size() > kLongest ? "..." : "");
}

bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }
bool is_lower_or_digit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z'); }
bool is_base64(char c) {
  return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
}
bool is_of_value(char c) {
  return is_lower_or_digit(c) || c == '+' || c == '-' || c == '.' || c == '_';
}

std::string hex_part(std::string_view name, std::string_view text, std::size_t size) {
  if (text.size() != size || !std::all_of(text.begin(), text.end(), is_hex)) {
    refuse_seal(fmt::format("the part {} is '{}', expected {} digits 0-9 and a-f", name,
                            quoted_part(text), size));
  }
  return std::string(text);
}

std::string base64_part(std::string_view name, std::string_view text,
                        std::optional<std::size_t> size) {
  const auto wrong = std::find_if_not(text.begin(), text.end(), is_base64);
  if (wrong != text.end()) {
    refuse_seal(fmt::format("the part {} has the character '{}', expected letters, digits, - and _",
                            name, quoted_part(std::string_view(&*wrong, 1))));
  }
  if (size ? text.size() == *size : text.size() % 2 == 0) return std::string(text);
  refuse_seal(fmt::format("the part {} has {} characters, expected {}", name, text.size(),
                          size ? fmt::format("{}", *size) : "an even number"));
}

SealKind parse_kind(std::string_view text) {
  for (const SealKind kind : {SealKind::kGenerate, SealKind::kEmbed}) {
    if (text == to_string(kind)) return kind;
  }
  refuse_seal(fmt::format("it is of '{}', expected 'generate' or 'embed'", quoted_part(text)));
}

std::vector<std::string_view> split_at(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

std::vector<SealOption> parse_options(SealKind kind, std::string_view text) {
  std::vector<SealOption> options;
  if (text.empty()) return options;
  std::size_t least = 0;  // the first index that may follow
  for (const std::string_view option : split_at(text, ',')) {
    const std::size_t equals = std::min(option.find('='), option.size());
    const std::string_view name = option.substr(0, equals);
    const std::string_view value = option.substr(std::min(equals + 1, option.size()));
    const std::size_t index = index_of_option(kind, name);
    if (index == kOptionNames.size() || index < least) {
      refuse_seal(fmt::format("it has the option '{}' {}", quoted_part(name),
                              index < least ? "twice or out of order" : "that heed does not know"));
    }
    if (value.empty() || value.size() > kMostOptionBytes ||
        !std::all_of(value.begin(), value.end(), is_of_value)) {
      refuse_seal(fmt::format("the option {} is '{}', expected 1 to {} letters, digits, +-._", name,
                              quoted_part(value), kMostOptionBytes));
    }
    least = index + 1;
    options.push_back({std::string(name), std::string(value)});
  }
  return options;
}

// The text without spaces and line breaks.
std::string joined_lines(std::string_view text) {
  if (text.size() > kMostBytes) {
    refuse_seal(fmt::format("it has {} bytes, expected at most {}", text.size(), kMostBytes));
  }
  std::string joined;
  std::copy_if(text.begin(), text.end(), std::back_inserter(joined),
               [](char c) { return c != ' ' && c != '\t' && c != '\r' && c != '\n'; });
  return joined;
}

void check_version(std::string_view version) {
  if (version == kVersion) return;
  const bool is_other =
      version.size() > 4 && version.size() < 8 && version.starts_with("heed") &&
      std::all_of(version.begin() + 4, version.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (is_other) {
    refuse_seal(fmt::format("it is of version {}, expected 1", version.substr(4)));
  }
  refuse_seal(fmt::format("it begins with '{}', expected '{}:'", quoted_part(version), kVersion));
}

}  // namespace

std::string_view to_string(SealKind kind) {
  return kind == SealKind::kGenerate ? "generate" : "embed";
}

std::string_view to_string(SealPart part) {
  constexpr std::array<std::string_view, 10> kNames{
      "kind", "model", "input", "option", "logits", "choice", "length", "vectors", "output", "all"};
  return kNames[static_cast<std::size_t>(part)];
}

std::string base64(std::span<const std::byte> bytes, std::size_t count) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t digit = 0;
    for (std::size_t bit = 6 * i; bit < 6 * i + 6; ++bit) {
      const bool is_set = (bytes[bit / 8] >> (7 - bit % 8) & std::byte{1}) != std::byte{0};
      digit = 2 * digit + (is_set ? 1 : 0);
    }
    text += kDigits[digit];
  }
  return text;
}

std::string inputs_text(const Seal& seal) {
  return fmt::format("{}:{}:{}:{}:{}", kVersion, to_string(seal.kind), seal.model, seal.input,
                     options_text(seal));
}

std::string to_string(const Seal& seal) {
  const std::string text =
      fmt::format("{}:{}:{}:{}", inputs_text(seal), seal.output, seal.steps, seal.all);
  return text + ':' + check_of(text);
}

Seal parse_seal(std::string_view text) {
  const std::string joined = joined_lines(text);
  if (joined.empty()) refuse_seal("it is empty");
  const std::vector<std::string_view> parts = split_at(joined, ':');
  check_version(parts.front());
  if (parts.size() != kNumParts) {
    refuse_seal(fmt::format("it has {} parts between colons, expected {}: was it cut off?",
                            parts.size(), kNumParts));
  }
  const std::string_view check = parts.back();
  const std::string expected =
      check_of(std::string_view(joined).substr(0, joined.size() - check.size() - 1));
  if (check != expected) {
    refuse_seal(fmt::format(
        "its last part is '{}', expected '{}' after what stands before it: characters were "
        "changed, or are missing",
        quoted_part(check), expected));
  }
  Seal seal{.kind = parse_kind(parts[1])};
  seal.model = hex_part("model", parts[2], kModelDigits);
  seal.input = hex_part("input", parts[3], kShortDigits);
  seal.options = parse_options(seal.kind, parts[4]);
  seal.output = hex_part("output", parts[5], kShortDigits);
  seal.steps = base64_part("steps", parts[6], std::nullopt);
  seal.all = base64_part("all", parts[7], kAllDigits);
  return seal;
}

namespace {

// The value of an option in a seal, or what it is without one.
std::string_view value_in(const Seal& seal, const OptionName& option) {
  const auto found = std::find_if(seal.options.begin(), seal.options.end(),
                                  [&](const SealOption& has) { return has.name == option.name; });
  return found == seal.options.end() ? option.otherwise : std::string_view(found->value);
}

void add_options(const Seal& expected, const Seal& found, std::vector<SealDifference>& all) {
  for (const OptionName& option : kOptionNames) {
    if (option.kind != found.kind) continue;
    const std::string_view wanted = value_in(expected, option);
    const std::string_view has = value_in(found, option);
    if (wanted == has) continue;
    all.push_back(
        {SealPart::kOption, -1,
         fmt::format("another option: {} is {}, in the seal {}", option.meaning, has, wanted)});
  }
}

constexpr std::size_t kPerStep = 2;  // characters of a step

std::int64_t num_steps(const Seal& seal) {
  return static_cast<std::int64_t>(seal.steps.size() / kPerStep);
}

bool is_greedy(const Seal& seal) {
  return std::none_of(seal.options.begin(), seal.options.end(),
                      [](const SealOption& option) { return option.name == "t"; });
}

// Adds the first token that differs.
void add_tokens(const Seal& expected, const Seal& found, std::vector<SealDifference>& all) {
  const std::size_t common = std::min(expected.steps.size(), found.steps.size());
  const auto place = std::mismatch(expected.steps.begin(),
                                   expected.steps.begin() + static_cast<std::ptrdiff_t>(common),
                                   found.steps.begin())
                         .first -
                     expected.steps.begin();
  if (place == static_cast<std::ptrdiff_t>(common)) return;
  const std::int64_t token = place / static_cast<std::ptrdiff_t>(kPerStep);
  // Without drawing, logits decide the choice.
  if (place % 2 == 0 || (is_greedy(expected) && is_greedy(found))) {
    all.push_back({SealPart::kLogits, token,
                   fmt::format("the logits differ from token {} on, of {} counted from 0", token,
                               num_steps(expected))});
  } else {
    all.push_back({SealPart::kChoice, token,
                   fmt::format("token {} of {}, counted from 0, is another one, drawn of the same "
                               "logits",
                               token, num_steps(expected))});
  }
}

void add_vectors(const Seal& expected, const Seal& found, std::vector<SealDifference>& all) {
  const std::int64_t common = std::min(num_steps(expected), num_steps(found));
  for (std::int64_t i = 0; i < common; ++i) {
    const std::size_t begin = static_cast<std::size_t>(i) * kPerStep;
    if (expected.steps.compare(begin, kPerStep, found.steps, begin, kPerStep) == 0) continue;
    all.push_back({SealPart::kVectors, i,
                   fmt::format("the vector of text {} differs, of {} counted from 0", i,
                               num_steps(expected))});
  }
}

}  // namespace

std::vector<SealDifference> input_differences(const Seal& expected, const Seal& found) {
  if (expected.kind != found.kind) {
    return {{SealPart::kKind, -1,
             fmt::format("the seal is of '{}', this is '{}'", to_string(expected.kind),
                         to_string(found.kind))}};
  }
  std::vector<SealDifference> all;
  if (expected.model != found.model) {
    all.push_back({SealPart::kModel, -1,
                   fmt::format("another model: the SHA-256 of its files begins with {}, in the "
                               "seal with {}",
                               found.model, expected.model)});
  }
  if (expected.input != found.input) {
    const bool is_text = found.kind == SealKind::kGenerate;
    all.push_back({SealPart::kInput, -1,
                   fmt::format("another input: {} are not those of the seal",
                               is_text ? "the tokens of the prompt" : "the texts")});
  }
  add_options(expected, found, all);
  return all;
}

std::vector<SealDifference> seal_differences(const Seal& expected, const Seal& found) {
  std::vector<SealDifference> all = input_differences(expected, found);
  if (expected.kind != found.kind) return all;
  const bool is_text = found.kind == SealKind::kGenerate;
  const std::size_t before = all.size();
  (is_text ? add_tokens : add_vectors)(expected, found, all);
  if (all.size() == before && expected.steps.size() != found.steps.size()) {
    all.push_back({SealPart::kLength, -1,
                   fmt::format("it has {} {}, the seal {}", num_steps(found),
                               is_text ? "tokens" : "vectors", num_steps(expected))});
  }
  if (expected.output != found.output && (is_text || all.size() == before)) {
    all.push_back({SealPart::kOutput, -1,
                   is_text ? "another text, or another reason for its end" : "other vectors"});
  }
  if (all.empty() && expected.all != found.all) {
    all.push_back({SealPart::kAll, -1,
                   "a bit differs, in a part that the short hashes of the seal do not tell"});
  }
  return all;
}

}}}  // namespace heed::v0::models
