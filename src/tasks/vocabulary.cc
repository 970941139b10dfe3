#include "heed/tasks/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "heed/error.h"
#include "io/atomic_file.h"
#include "io/byte_source.h"
#include "io/json.h"
#include "io/unicode.h"

namespace heed::inline v0::tasks {

namespace {

constexpr std::string_view kFormat = "heed.vocabulary";
constexpr int kVersion = 1;

// Larger files are no vocabularies: 2²⁰ words of 100 bytes.
constexpr std::int64_t kMaxFileSize = std::int64_t{100} << 20;

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  const auto finish = [&] {
    if (!word.empty()) words.push_back(std::exchange(word, {}));
  };
  while (!text.empty()) {
    const auto point = *unicode::first_code_point(text);
    if (unicode::is_whitespace(point.value)) {
      finish();
    } else {
      word += text.substr(0, point.size);
    }
    text.remove_prefix(point.size);
  }
  finish();
  return words;
}

bool is_special(std::string_view token) {
  return std::find(kSpecialTokens.begin(), kSpecialTokens.end(), token) != kSpecialTokens.end();
}

std::vector<std::string> special_tokens() { return {kSpecialTokens.begin(), kSpecialTokens.end()}; }

std::vector<std::string> by_frequency(std::span<const std::string> texts, Units units) {
  std::map<std::string, std::int64_t> counts;
  for (const auto& text : texts) {
    for (auto& token : split_units(text, units)) ++counts[std::move(token)];
  }
  std::vector<std::pair<std::string, std::int64_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> tokens = special_tokens();
  for (auto& [token, count] : sorted) {
    if (!is_special(token)) tokens.push_back(std::move(token));
  }
  return tokens;
}

const char* name_of(Units units) { return units == Units::kWords ? "words" : "characters"; }

// The member, or the null value, which is of no type that is asked for.
const nlohmann::json& member(const nlohmann::json& json, const char* name) {
  static const nlohmann::json none;
  const auto found = json.find(name);
  return found == json.end() ? none : *found;
}

// What is wrong with a parsed vocabulary; empty if nothing is.
std::string problem_with(const nlohmann::json& json) {
  if (!json.is_object() || member(json, "format") != kFormat) {
    return fmt::format("expected an object with \"format\": \"{}\"", kFormat);
  }
  if (member(json, "version") != kVersion) {
    return fmt::format("expected \"version\": {}", kVersion);
  }
  const auto& units = member(json, "units");
  if (units != name_of(Units::kWords) && units != name_of(Units::kCharacters)) {
    return "expected \"units\": \"words\" or \"characters\"";
  }
  const auto& tokens = member(json, "tokens");
  const auto is_text = [](const auto& token) {
    return token.is_string() && !token.template get_ref<const std::string&>().empty();
  };
  if (!tokens.is_array() || !std::all_of(tokens.begin(), tokens.end(), is_text)) {
    return "expected \"tokens\": an array of strings, none of them empty";
  }
  if (tokens.size() < kSpecialTokens.size() ||
      !std::equal(kSpecialTokens.begin(), kSpecialTokens.end(), tokens.begin())) {
    return fmt::format("expected tokens that begin with {}", fmt::join(kSpecialTokens, ", "));
  }
  return "";
}

}  // namespace

std::vector<std::string> split_units(std::string_view text, Units units) {
  if (const auto invalid = unicode::find_invalid(text)) {
    throw InvalidArgument(
        fmt::format("split_units: the text is not valid UTF-8 at byte {}", *invalid));
  }
  if (units == Units::kWords) return split_words(text);
  std::vector<std::string> characters;
  while (!text.empty()) {
    const std::size_t size = unicode::grapheme_size(text);
    characters.emplace_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return characters;
}

std::string join_units(std::span<const std::string> tokens, Units units) {
  return fmt::format("{}", fmt::join(tokens, units == Units::kWords ? " " : ""));
}

Vocabulary::Vocabulary(Units units, std::vector<std::string> tokens)
    : units_(units), tokens_(std::move(tokens)) {
  for (std::int64_t id = 0; id < size(); ++id) ids_.emplace(token(id), id);
}

Vocabulary::Vocabulary(std::span<const std::string> texts, Units units)
    : Vocabulary(units, by_frequency(texts, units)) {}

const std::string& Vocabulary::token(std::int64_t id) const {
  if (id < 0 || id >= size()) {
    throw InvalidArgument(fmt::format("Vocabulary: id is {}, expected 0 to {}", id, size() - 1));
  }
  return tokens_[static_cast<std::size_t>(id)];
}

std::int64_t Vocabulary::id(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() || is_special(token) ? kUnknownId : found->second;
}

std::vector<std::int64_t> Vocabulary::encode(std::string_view text) const {
  std::vector<std::int64_t> ids;
  for (const auto& token : split_units(text, units_)) ids.push_back(id(token));
  return ids;
}

std::vector<std::string> Vocabulary::tokens(std::span<const std::int64_t> ids) const {
  std::vector<std::string> result;
  for (const std::int64_t id : ids) result.push_back(token(id));
  return result;
}

std::string Vocabulary::decode(std::span<const std::int64_t> ids) const {
  std::vector<std::string> shown;
  for (const std::int64_t id : ids) {
    const std::string& text = token(id);
    if (id != kPadId && id != kBosId && id != kEosId) shown.push_back(text);
  }
  return join_units(shown, units_);
}

std::string Vocabulary::to_json() const {
  const nlohmann::ordered_json json{
      {"format", kFormat}, {"version", kVersion}, {"units", name_of(units_)}, {"tokens", tokens_}};
  return json.dump(1) + "\n";
}

Vocabulary Vocabulary::from_json(std::string_view text, const std::string& name) {
  const nlohmann::json json = io::parse_json(text, name);
  if (const std::string problem = problem_with(json); !problem.empty()) {
    throw FormatError(name, 0, problem);
  }
  const bool has_words = json["units"] == name_of(Units::kWords);
  Vocabulary result(has_words ? Units::kWords : Units::kCharacters,
                    json["tokens"].get<std::vector<std::string>>());
  if (result.ids_.size() != result.tokens_.size()) {
    throw FormatError(name, 0, "a token is listed twice");
  }
  return result;
}

void Vocabulary::save(const std::filesystem::path& path) const {
  const std::string text = to_json();
  io::write_file_atomically(
      path, [&](const io::ByteSink& sink) { sink(std::as_bytes(std::span<const char>(text))); });
}

Vocabulary Vocabulary::load(const std::filesystem::path& path) {
  io::FileSource file(path);
  if (file.size() > kMaxFileSize) {
    throw FormatError(path.string(), 0,
                      fmt::format("the file has {} bytes, expected a vocabulary of at most {}",
                                  file.size(), kMaxFileSize));
  }
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read(0, std::as_writable_bytes(std::span<char>(text)));
  return from_json(text, path.string());
}

}  // namespace heed::inline v0::tasks
