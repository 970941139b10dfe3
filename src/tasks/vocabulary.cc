#include "heed/tasks/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/printable.h"
#include "heed/core/error.h"
#include "io/atomic_file.h"
#include "io/json.h"
#include "io/text_file.h"
#include "io/unicode.h"
#include "text/input_and_streams.h"

namespace heed { inline namespace v0 { namespace tasks {

namespace {

constexpr std::string_view kFormat = "heed.vocabulary";
constexpr int kVersion = 1;

// Larger files are not vocabularies: 2²⁰ words of 100 bytes.
constexpr std::int64_t kMaxFileSize = std::int64_t{100} << 20;

// Calls visit(token) for each part of a valid text, in order.
template <class Visit>
void for_each_unit(std::string_view text, Units units, const Visit& visit) {
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    if (units == Units::kCharacters) {
      const std::size_t size = unicode::grapheme_size(rest);
      visit(rest.substr(0, size));
      at += size;
      begin = at;
      continue;
    }
    const auto point = *unicode::first_code_point(rest);
    if (unicode::is_whitespace(point.value)) {
      if (begin < at) visit(text.substr(begin, at - begin));
      begin = at + point.size;
    }
    at += point.size;
  }
  if (begin < text.size()) visit(text.substr(begin));
}

bool is_special_name(std::string_view token) {
  return std::find(kSpecialTokens.begin(), kSpecialTokens.end(), token) != kSpecialTokens.end();
}

std::vector<std::string> special_names() { return {kSpecialTokens.begin(), kSpecialTokens.end()}; }

std::vector<std::string> by_frequency(std::span<const std::string> texts, Units units) {
  std::map<std::string, std::int64_t> counts;
  for (const auto& text : texts) {
    for (auto& token : split_units(text, units)) ++counts[std::move(token)];
  }
  std::vector<std::pair<std::string, std::int64_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> tokens = special_names();
  for (auto& [token, count] : sorted) {
    if (!is_special_name(token)) tokens.push_back(std::move(token));
  }
  return tokens;
}

const char* name_of(Units units) { return units == Units::kWords ? "words" : "characters"; }

// Reads the members of a vocabulary from its text; members with other names are ignored.
class VocabularyReader : public io::JsonReader {
 public:
  explicit VocabularyReader(const std::string& file) : JsonReader(file), file_(file) {}

  // Throws FormatError unless the text was that of a vocabulary.
  void check() const {
    if (format_ != kFormat) {
      fail(fmt::format("expected an object with \"format\": \"{}\"", kFormat));
    }
    if (version_ != kVersion) fail(fmt::format("expected \"version\": {}", kVersion));
    if (units_ != name_of(Units::kWords) && units_ != name_of(Units::kCharacters)) {
      fail("expected \"units\": \"words\" or \"characters\"");
    }
    if (!has_tokens_) fail("expected \"tokens\": an array of strings, none of them empty");
    if (tokens_.size() < kSpecialTokens.size() ||
        !std::equal(kSpecialTokens.begin(), kSpecialTokens.end(), tokens_.begin())) {
      fail(fmt::format("expected tokens that begin with {}", fmt::join(kSpecialTokens, ", ")));
    }
  }

  Units units() const {
    return units_ == name_of(Units::kWords) ? Units::kWords : Units::kCharacters;
  }
  std::vector<std::string> take_tokens() { return std::move(tokens_); }

  bool key(string_t& key) override {
    if (depth_ == kMembers) {
      name_ = key;
      if (!names_.insert(key).second) fail(fmt::format("'{}' occurs twice", io::printable(key)));
    }
    return true;
  }

  bool string(string_t& value) override {
    if (depth_ == kMembers && name_ == "format") format_ = value;
    if (depth_ == kMembers && name_ == "units") units_ = value;
    if (is_in_tokens()) {
      has_tokens_ = has_tokens_ && !value.empty();
      tokens_.push_back(std::move(value));
    }
    return true;
  }

  bool start_array(std::size_t) override {
    if (depth_ == kMembers && name_ == "tokens") has_tokens_ = true;
    return open();
  }

  bool number_unsigned(number_unsigned_t value) override {
    return number_float(static_cast<double>(value), "");
  }

  bool number_float(number_float_t value, const string_t&) override {
    if (depth_ == kMembers && name_ == "version") version_ = value;
    return take_no_text();
  }

  bool number_integer(number_integer_t) override { return take_no_text(); }
  bool null() override { return take_no_text(); }
  bool boolean(bool) override { return take_no_text(); }
  bool start_object(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

 private:
  static constexpr int kMembers = 1;  // the depth of named values

  [[noreturn]] void fail(const std::string& problem) const { throw FormatError(file_, 0, problem); }

  bool is_in_tokens() const { return depth_ > kMembers && name_ == "tokens"; }

  bool take_no_text() {
    if (is_in_tokens()) has_tokens_ = false;
    return true;
  }

  bool open() {
    take_no_text();
    ++depth_;
    return true;
  }

  bool close() {
    --depth_;
    return true;
  }

  const std::string& file_;
  int depth_ = 0;  // the number of open arrays and objects
  std::set<std::string> names_;
  std::string name_;  // of the member being read
  std::string format_;
  double version_ = 0;
  std::string units_;
  bool has_tokens_ = false;  // true for an array of texts, all non-empty so far
  std::vector<std::string> tokens_;
};

}  // namespace

std::vector<std::string> split_units(std::string_view text, Units units) {
  text::check_utf8("split_units", text);
  std::vector<std::string> tokens;
  for_each_unit(text, units, [&](std::string_view token) { tokens.emplace_back(token); });
  return tokens;
}

std::string join_units(std::span<const std::string> tokens, Units units) {
  return fmt::format("{}", fmt::join(tokens, units == Units::kWords ? " " : ""));
}

Vocabulary::Vocabulary(Units units, std::vector<std::string> tokens)
    : units_(units), tokens_(std::move(tokens)) {
  for (const std::string& token : tokens_) ids_.emplace(token, std::ssize(ids_));
}

Vocabulary::Vocabulary(std::span<const std::string> texts, Units units)
    : Vocabulary(units, by_frequency(texts, units)) {}

std::string Vocabulary::token(std::int64_t id) const {
  check_id("Vocabulary::token", id);
  return tokens_[static_cast<std::size_t>(id)];
}

std::optional<std::int64_t> Vocabulary::id(std::string_view token) const {
  const auto found = ids_.find(token);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

bool Vocabulary::is_special(std::int64_t id) const {
  check_id("Vocabulary::is_special", id);
  return id < static_cast<std::int64_t>(kSpecialTokens.size());
}

const text::SpecialTokens& Vocabulary::special_tokens() const {
  static const text::SpecialTokens special{
      .begin = kBosId, .end = kEosId, .padding = kPadId, .unknown = kUnknownId};
  return special;
}

text::Encoding Vocabulary::encode(std::string_view text,
                                  const text::EncodeOptions& /*options*/) const {
  text::check_utf8("Vocabulary::encode", text);
  text::Encoding encoding;
  for_each_unit(text, units_, [&](std::string_view token) {
    const auto begin = static_cast<std::int64_t>(token.data() - text.data());
    encoding.ids.push_back(is_special_name(token) ? kUnknownId : id(token).value_or(kUnknownId));
    encoding.ranges.push_back({begin, begin + static_cast<std::int64_t>(token.size())});
  });
  encoding.type_ids.assign(encoding.ids.size(), 0);
  return encoding;
}

std::string Vocabulary::decode(std::span<const std::int64_t> ids,
                               const text::DecodeOptions& options) const {
  std::vector<std::string> shown;
  for (const std::int64_t id : ids) {
    check_id("Vocabulary::decode", id);
    if (options.skip_special_tokens && is_special(id) && id != kUnknownId) continue;
    shown.push_back(token(id));
  }
  return join_units(shown, units_);
}

std::unique_ptr<text::DecodeStream> Vocabulary::stream(std::span<const std::int64_t> context,
                                                       const text::DecodeOptions& options) const {
  const auto piece = [this, options, has_text = false](std::int64_t id) mutable {
    std::string text = decode({&id, 1}, options);
    if (text.empty()) return text;
    const bool is_parted = std::exchange(has_text, true) && units_ == Units::kWords;
    return is_parted ? ' ' + text : text;
  };
  return text::after_context(std::make_unique<text::JoinedStream>(piece), context);
}

std::string Vocabulary::to_json() const {
  std::string tokens;
  for (const std::string& token : tokens_) {
    tokens += fmt::format("{}\n  {}", tokens.empty() ? "" : ",", io::json_string(token));
  }
  return fmt::format(
      "{{\n \"format\": \"{}\",\n \"version\": {},\n \"units\": \"{}\",\n \"tokens\": [{}\n "
      "]\n}}\n",
      kFormat, kVersion, name_of(units_), tokens);
}

Vocabulary Vocabulary::from_json(std::string_view text, const std::string& name) {
  VocabularyReader reader(name);
  io::read_json(text, reader);
  reader.check();
  Vocabulary result(reader.units(), reader.take_tokens());
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
  const std::string text = io::read_whole_file(path, "a vocabulary", kMaxFileSize);
  return from_json(text, path.string());
}

}}}  // namespace heed::v0::tasks
