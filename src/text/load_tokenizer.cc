// Loads a tokenizer from the files of a folder.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "core/printable.h"
#include "heed/core/error.h"
#include "heed/text/tokenizer.h"
#include "io/byte_source.h"
#include "io/json_value.h"
#include "io/text_file.h"
#include "io/unicode.h"
#include "text/formats.h"
#include "text/token_models.h"

namespace heed { inline namespace v0 { namespace text {

namespace {

std::vector<TokenEntry> read_lines(std::string_view text, const std::string& file) {
  if (const auto invalid = unicode::find_invalid(text)) {
    throw FormatError(file, static_cast<std::int64_t>(*invalid), "not valid UTF-8");
  }
  std::vector<TokenEntry> entries;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    entries.push_back({std::string(line), static_cast<std::int64_t>(entries.size())});
    at = end + 1;
  }
  return entries;
}

void check_class(const std::string& name, const std::string& file) {
  constexpr std::array<std::string_view, 3> kKnown{"BertTokenizer", "DistilBertTokenizer",
                                                   "ElectraTokenizer"};
  const std::string_view plain =
      std::string_view(name).substr(0, name.ends_with("Fast") ? name.size() - 4 : name.size());
  if (name.empty() || std::find(kKnown.begin(), kKnown.end(), plain) != kKnown.end()) return;
  throw FormatError(file, 0,
                    fmt::format("tokenizer_config.json names the class '{}', expected one of BERT: "
                                "BertTokenizer, DistilBertTokenizer, ElectraTokenizer",
                                io::printable(name)));
}

}  // namespace

std::unique_ptr<const Tokenizer> tokenizer_from_vocabulary(std::string_view text,
                                                           const std::string& file,
                                                           const TokenizerConfig& config) {
  check_class(config.tokenizer_class, file);
  PipelineParts parts;
  parts.tokens = std::make_unique<const TokenTable>(read_lines(text, file),
                                                    std::vector<TokenEntry>{}, file, 0);
  const auto id_of = [&](const std::optional<std::string>& said, const char* otherwise) {
    const std::string token = said.value_or(otherwise);
    if (const auto id = parts.tokens->find(token)) return *id;
    throw FormatError(file, static_cast<std::int64_t>(text.size()),
                      fmt::format("the token '{}' is missing", io::printable(token)));
  };
  WordPieceOptions options;
  options.unknown = id_of(config.unknown, "[UNK]");
  const std::int64_t cls = id_of(config.begin, "[CLS]");
  const std::int64_t sep = id_of(config.separator, "[SEP]");

  std::set<std::int64_t> special{options.unknown, cls, sep};
  for (const auto& [said, name] : {std::pair(config.padding, "[PAD]"), {config.mask, "[MASK]"}}) {
    if (const auto id = parts.tokens->find(said.value_or(name))) special.insert(*id);
  }
  for (const std::int64_t id : special) {
    AddedToken token;
    token.content = parts.tokens->token(id);
    token.id = id;
    token.is_special = true;
    parts.added.push_back(std::move(token));
  }
  using Kind = FramePart::Kind;
  parts.framing.single = {{Kind::kToken, cls, 0}, {Kind::kFirstText, 0, 0}, {Kind::kToken, sep, 0}};
  parts.framing.pair = parts.framing.single;
  parts.framing.pair.push_back({Kind::kSecondText, 0, 1});
  parts.framing.pair.push_back({Kind::kToken, sep, 1});
  parts.normalizer = [bert = config.bert](AlignedText normalized) {
    return normalize_bert(std::move(normalized), bert);
  };
  parts.pre_tokenizer = split_bert;
  parts.decoder = word_piece_decoder("##", true);
  parts.continuing_prefix = options.prefix;
  parts.special.unknown = options.unknown;
  parts.model = std::make_unique<const WordPiece>(*parts.tokens, options);
  apply_config(parts, config);
  return make_pipeline(std::move(parts));
}

namespace {

using io::JsonKind;
using io::JsonPart;

// Reads "[CLS]" or {"content": "[CLS]", …}.
std::optional<std::string> token_of(const JsonPart& config, std::string_view key) {
  const auto part = config.find(key);
  if (!part) return std::nullopt;
  return part->is(JsonKind::kObject) ? part->at("content").string() : part->string();
}

// Reads one template, or the default of several named ones.
std::optional<std::string> template_of(const JsonPart& config) {
  const auto part = config.find("chat_template");
  if (!part) return std::nullopt;
  if (!part->is(JsonKind::kArray)) return part->string();
  for (const JsonPart& item : part->items()) {
    if (item.at("name").string() == "default") return item.at("template").string();
  }
  return std::nullopt;
}

std::optional<std::string> either(std::optional<std::string> first,
                                  std::optional<std::string> second) {
  return first ? std::move(first) : std::move(second);
}

// Returns the tokens that the framing puts before and after a text, and between two.
SpecialTokens roles_of(const Framing& framing) {
  SpecialTokens roles;
  const auto& single = framing.single;
  if (single.front().kind == FramePart::Kind::kToken) roles.begin = single.front().id;
  if (single.back().kind == FramePart::Kind::kToken) roles.end = single.back().id;
  bool is_behind_first = false;
  for (const FramePart& part : framing.pair) {
    if (part.kind == FramePart::Kind::kFirstText) is_behind_first = true;
    if (part.kind != FramePart::Kind::kToken || !is_behind_first) continue;
    roles.separator = part.id;
    break;
  }
  return roles;
}

std::optional<std::int64_t> special_id(const PipelineParts& parts,
                                       const std::array<std::string_view, 2>& names) {
  for (const AddedToken& token : parts.added) {
    if (token.is_special && (token.content == names[0] || token.content == names[1])) {
      return token.id;
    }
  }
  return std::nullopt;
}

}  // namespace

TokenizerConfig parse_tokenizer_config(std::string_view text, const std::string& file) {
  const io::JsonValue root = io::parse_json(text, file);
  const JsonPart part(file, root);
  TokenizerConfig config;
  config.separator = token_of(part, "sep_token");
  config.begin = either(token_of(part, "bos_token"), token_of(part, "cls_token"));
  config.end = either(token_of(part, "eos_token"), config.separator);
  config.padding = token_of(part, "pad_token");
  config.unknown = token_of(part, "unk_token");
  config.mask = token_of(part, "mask_token");
  config.chat_template = template_of(part);
  config.tokenizer_class = part.string_or("tokenizer_class", "");
  config.bert.lowers = part.boolean_or("do_lower_case", true);
  config.bert.strips_accents = part.boolean_or("strip_accents", config.bert.lowers);
  config.bert.spaces_han = part.boolean_or("tokenize_chinese_chars", true);
  return config;
}

ChatTokens chat_tokens(const PipelineParts& parts) {
  const auto text_of = [&](const std::optional<std::int64_t>& id) {
    return id ? parts.tokens->token(*id) : std::string();
  };
  return {text_of(parts.special.begin),
          text_of(parts.special.end),
          {{"unk_token", text_of(parts.special.unknown)},
           {"pad_token", text_of(parts.special.padding)},
           {"sep_token", text_of(parts.special.separator)},
           {"mask_token", text_of(parts.special.mask)}}};
}

void apply_config(PipelineParts& parts, const TokenizerConfig& config) {
  const auto choose = [&](std::optional<std::int64_t>& role, const std::optional<std::string>& said,
                          std::optional<std::int64_t> otherwise) {
    if (said) {
      if (const auto id = parts.tokens->find(*said)) otherwise = id;
    }
    if (otherwise) role = otherwise;
  };
  const SpecialTokens framed_roles = roles_of(parts.framing);
  SpecialTokens& special = parts.special;
  choose(special.begin, config.begin, framed_roles.begin);
  choose(special.end, config.end, framed_roles.end);
  choose(special.separator, config.separator, framed_roles.separator);
  choose(special.padding, config.padding, special_id(parts, {"[PAD]", "<pad>"}));
  choose(special.mask, config.mask, special_id(parts, {"[MASK]", "<mask>"}));
  choose(special.unknown, config.unknown, std::nullopt);
  if (!config.chat_template) return;
  parts.chat = read_template(*config.chat_template, chat_tokens(parts));
}

std::unique_ptr<const Tokenizer> tokenizer_from_json(std::string_view text, const std::string& file,
                                                     const TokenizerConfig& config) {
  const io::JsonValue root = io::parse_json(text, file);
  const io::JsonPart part(file, root);
  PipelineParts parts;
  if (const auto added = part.find("added_tokens")) parts.added = read_added_tokens(*added);
  read_model(part.at("model"), parts);
  if (const auto normalizer = part.find("normalizer")) {
    parts.normalizer = read_normalizer(*normalizer);
  }
  if (const auto splits = part.find("pre_tokenizer")) {
    parts.pre_tokenizer = read_pre_tokenizer(*splits);
  }
  if (const auto framing = part.find("post_processor")) {
    parts.framing = read_framing(*framing, *parts.tokens);
  }
  if (const auto decoder = part.find("decoder")) parts.decoder = read_decoder(*decoder);
  apply_config(parts, config);
  return make_pipeline(std::move(parts));
}

namespace {

namespace fs = std::filesystem;

bool is_gguf(const fs::path& path) {
  io::FileSource file(path);
  std::string magic(static_cast<std::size_t>(std::min<std::int64_t>(file.size(), 4)), '\0');
  file.read(0, std::as_writable_bytes(std::span(magic)));
  return magic == "GGUF";
}

bool is_there(const fs::path& path) {
  // ignored: a file that cannot be examined cannot be read either, and that error says why
  std::error_code error;
  return fs::exists(path, error);
}

// Reads the configuration in the files that come with a tokenizer.
TokenizerConfig config_in(const fs::path& folder) {
  TokenizerConfig config;
  const fs::path path = folder / "tokenizer_config.json";
  if (is_there(path))
    config = parse_tokenizer_config(io::read_whole_file(path, "a tokenizer's configuration"),
                                    path.string());
  const fs::path jinja = folder / "chat_template.jinja";
  if (is_there(jinja)) config.chat_template = io::read_whole_file(jinja, "a chat template");
  return config;
}

}  // namespace

std::unique_ptr<const Tokenizer> load_tokenizer(const std::filesystem::path& path) {
  fs::path file = path;
  std::error_code error;
  if (fs::is_directory(path, error)) {
    file = path / "tokenizer.json";
    if (!is_there(file) && is_there(path / "vocab.txt")) file = path / "vocab.txt";
  }
  if (is_gguf(file)) return tokenizer_from_gguf(GgufFile::open(file));
  const TokenizerConfig config = config_in(file.parent_path());
  const std::string text = io::read_whole_file(file, "a tokenizer");
  return file.extension() == ".txt" ? tokenizer_from_vocabulary(text, file.string(), config)
                                    : tokenizer_from_json(text, file.string(), config);
}

}}}  // namespace heed::v0::text
