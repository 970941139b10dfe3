// The inputs of models: texts, and repeated random tokens.
#include "inspect/model_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "heed/core/error.h"
#include "heed/core/random.h"
#include "heed/inspect/model_heads.h"
#include "io/unicode.h"

namespace heed { inline namespace v0 { namespace inspect {

namespace {

// Cuts tokens before the last special one, so that the text still ends as the model expects.
void cut(text::Encoding& encoding, const text::Tokenizer& tokenizer, std::int64_t max_tokens) {
  const auto size = static_cast<std::int64_t>(encoding.ids.size());
  if (size <= max_tokens) return;
  const std::int64_t kept_end = tokenizer.is_special(encoding.ids.back()) ? 1 : 0;
  const auto remove = [&](auto& values) {
    values.erase(values.begin() + (max_tokens - kept_end), values.end() - kept_end);
  };
  remove(encoding.ids);
  remove(encoding.ranges);
  remove(encoding.type_ids);
}

ModelText model_text(const models::Model& model, text::Encoding encoding, std::string_view first,
                     std::string_view second, std::int64_t max_tokens) {
  if (max_tokens < 2) {
    throw InvalidArgument(
        fmt::format("read_text: max_tokens is {}, expected at least 2", max_tokens));
  }
  const text::Tokenizer& tokenizer = model.tokenizer();
  cut(encoding, tokenizer, std::min(max_tokens, model.config().max_positions));
  return text_of(tokenizer, std::move(encoding), first, second);
}

bool is_made_of_letters(std::string_view label) {
  if (label.empty()) return false;
  while (!label.empty()) {
    const auto point = unicode::first_code_point(label);
    if (!point || !unicode::is_word_character(point->value)) return false;
    label.remove_prefix(point->size);
  }
  return true;
}

// The tokens first ≤ id < last that consist of letters.
std::vector<std::int64_t> words_among(const text::Tokenizer& tokenizer, std::int64_t first,
                                      std::int64_t last) {
  std::vector<std::int64_t> ids;
  for (std::int64_t id = first; id < last; ++id) {
    if (!tokenizer.is_special(id) && is_made_of_letters(tokenizer.label(id))) ids.push_back(id);
  }
  return ids;
}

// Tokens of letters that the model knows, at least `length` if there are so many.
std::vector<std::int64_t> candidates_of(const models::Model& model, std::int64_t length) {
  const text::Tokenizer& tokenizer = model.tokenizer();
  const std::int64_t size = std::min(tokenizer.vocab_size(), model.config().vocab_size);
  std::vector<std::int64_t> ids = words_among(tokenizer, size / 4, size - size / 4);
  if (static_cast<std::int64_t>(ids.size()) >= length) return ids;
  return words_among(tokenizer, 0, size);
}

void check_at_least(const char* name, std::int64_t value, std::int64_t least) {
  if (value >= least) return;
  throw InvalidArgument(
      fmt::format("repeated_tokens: {} is {}, expected at least {}", name, value, least));
}

// The special tokens around a sequence.
struct Frame {
  std::optional<std::int64_t> begin;
  std::optional<std::int64_t> end;

  std::int64_t length() const { return (begin ? 1 : 0) + (end ? 1 : 0); }
};

Frame frame_of(const models::Model& model) {
  const text::SpecialTokens& special = model.tokenizer().special_tokens();
  if (model.config().is_causal()) return {special.begin, std::nullopt};
  return {special.begin, special.end ? special.end : special.separator};
}

void check_numbers(const models::Model& model, const RepeatedTokens& numbers, const Frame& frame,
                   std::int64_t num_candidates) {
  check_at_least("length", numbers.length, 1);
  check_at_least("repeats", numbers.repeats, 2);
  check_at_least("sequences", numbers.sequences, 1);
  if (numbers.length > num_candidates) {
    throw InvalidArgument(fmt::format(
        "repeated_tokens: length is {}, expected at most {}: so many tokens of the vocabulary are "
        "drawn from",
        numbers.length, num_candidates));
  }
  const std::int64_t room = model.config().max_positions - frame.length();
  if (numbers.repeats <= room / numbers.length) return;
  throw InvalidArgument(
      fmt::format("repeated_tokens: {} times {} tokens are more than the {} that the model's "
                  "positions have room for",
                  numbers.repeats, numbers.length, room));
}

}  // namespace

ModelText text_of(const text::Tokenizer& tokenizer, text::Encoding encoding, std::string_view first,
                  std::string_view second) {
  TokenSequence tokens = read_tokens(tokenizer, encoding, first, second);
  std::vector<std::string> labels = tokenizer.labels(encoding.ids);
  return {std::move(tokens), std::move(encoding.type_ids), std::move(labels)};
}

models::Inputs inputs_of(const ModelText& text) {
  models::Inputs inputs = models::Inputs::of(text.tokens.ids);
  // Models without token types accept none.
  if (std::any_of(text.type_ids.begin(), text.type_ids.end(),
                  [](std::int64_t type) { return type != 0; })) {
    inputs.type_ids = text.type_ids;
  }
  return inputs;
}

ModelText read_text(const models::Model& model, std::string_view text, std::int64_t max_tokens) {
  return model_text(model, model.tokenizer().encode(text), text, {}, max_tokens);
}

ModelText read_pair(const models::Model& model, std::string_view first, std::string_view second,
                    std::int64_t max_tokens) {
  return model_text(model, model.tokenizer().encode_pair(first, second), first, second, max_tokens);
}

std::vector<ModelText> repeated_tokens(const models::Model& model, const RepeatedTokens& numbers) {
  const std::vector<std::int64_t> candidates = candidates_of(model, numbers.length);
  const Frame frame = frame_of(model);
  check_numbers(model, numbers, frame, static_cast<std::int64_t>(candidates.size()));
  TorchGenerator random(numbers.seed);
  std::vector<ModelText> texts;
  for (std::int64_t i = 0; i < numbers.sequences; ++i) {
    const Tensor<std::int64_t> order =
        random.randperm(static_cast<std::int64_t>(candidates.size()));
    std::vector<std::int64_t> ids;
    if (frame.begin) ids.push_back(*frame.begin);
    for (std::int64_t k = 0; k < numbers.repeats * numbers.length; ++k) {
      ids.push_back(candidates[static_cast<std::size_t>(order(k % numbers.length))]);
    }
    if (frame.end) ids.push_back(*frame.end);
    ModelText& text = texts.emplace_back();
    text.labels = model.tokenizer().labels(ids);
    text.tokens = read_tokens(model.tokenizer(), std::move(ids));
    text.first_repeated = (frame.begin ? 1 : 0) + numbers.length;
  }
  return texts;
}

}}}  // namespace heed::v0::inspect
