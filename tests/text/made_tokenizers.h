// Small tokenizers that tests make.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "heed/text/tokenizer.h"
#include "text/code_points.h"
#include "text/formats.h"

namespace heed::testing_support {

// Returns tokenizer.json of a model like BERT, with `parts` besides the model.
inline std::string bert_json(std::string_view parts = R"(,
    "normalizer": {"type": "BertNormalizer"}, "pre_tokenizer": {"type": "BertPreTokenizer"})") {
  return R"({"added_tokens": [
      {"id": 0, "content": "[PAD]", "special": true}, {"id": 1, "content": "[UNK]", "special": true},
      {"id": 2, "content": "[CLS]", "special": true}, {"id": 3, "content": "[SEP]", "special": true},
      {"id": 4, "content": "[MASK]", "special": true, "lstrip": true}],
    "post_processor": {"type": "BertProcessing", "cls": ["[CLS]", 2], "sep": ["[SEP]", 3]},
    "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab": {
      "[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4, "the": 5, "un": 6, "##aff": 7,
      "##able": 8, "cat": 9, "##s": 10, "naive": 11, ".": 12, "do": 13, "n": 14, "'": 15, "t": 16,
      "猫": 17}})" +
         std::string(parts) + "}";
}

// Returns the 256 bytes as tokens 0 … 255, then `more`: "," and entries of a JSON object.
inline std::string byte_vocabulary(std::string_view more) {
  std::string json = "{";
  for (int byte = 0; byte < 256; ++byte) {
    const std::string token(text::visible_byte(static_cast<unsigned char>(byte)));
    const bool is_escaped = token == "\"" || token == "\\";
    json += byte == 0 ? "\"" : ", \"";
    json += (is_escaped ? "\\" : "") + token + "\": " + std::to_string(byte);
  }
  return json + std::string(more) + "}";
}

// Returns tokenizer.json of a model like GPT-2 with "the", " the", "ing", "in" and "<|end|>".
inline std::string byte_level_json(std::string_view parts = R"(,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false})") {
  const std::string vocabulary =
      byte_vocabulary(R"(, "th": 256, "the": 257, "Ġthe": 258, "in": 259, "ing": 260, "Ġt": 261)");
  return R"({"added_tokens": [{"id": 262, "content": "<|end|>", "special": true},
                              {"id": 263, "content": "<tool>", "special": false}],
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "vocab": )" +
         vocabulary + R"(, "merges": ["t h", ["th", "e"], "Ġ the", "i n", "in g", "Ġ t"]})" +
         std::string(parts) + "}";
}

// Returns tokenizer.json of a model like T5, with `parts` besides the model.
inline std::string unigram_json(std::string_view parts = "") {
  return R"({"added_tokens": [{"id": 0, "content": "<unk>", "special": true},
                              {"id": 1, "content": "</s>", "special": true}],
    "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
    "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
    "post_processor": {"type": "TemplateProcessing",
      "single": [{"Sequence": {"id": "A", "type_id": 0}},
                 {"SpecialToken": {"id": "</s>", "type_id": 0}}],
      "pair": [], "special_tokens": {"</s>": {"id": "</s>", "ids": [1], "tokens": ["</s>"]}}},
    "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["</s>", 0], ["▁", -1],
      ["▁the", -2], ["▁t", -3], ["hes", -4], ["▁cat", -2.5], ["s", -3], ["a", -4]]})" +
         std::string(parts) + "}";
}

inline std::unique_ptr<const text::Tokenizer> tokenizer_of(const std::string& json,
                                                           const std::string& config = "{}") {
  return text::tokenizer_from_json(json, "t.json", text::parse_tokenizer_config(config, "c.json"));
}

// Returns the tokens of a text as the file writes them.
inline std::vector<std::string> tokens_of(const text::Tokenizer& tokenizer, std::string_view text,
                                          const text::EncodeOptions& options = {}) {
  std::vector<std::string> tokens;
  for (const std::int64_t id : tokenizer.encode(text, options).ids) {
    tokens.push_back(tokenizer.token(id));
  }
  return tokens;
}

// Returns the bytes of the text of each token.
inline std::vector<std::string> parts_of(const text::Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::string> parts;
  for (const auto& [begin, end] : tokenizer.encode(text).ranges) {
    parts.emplace_back(
        text.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
  }
  return parts;
}

}  // namespace heed::testing_support
