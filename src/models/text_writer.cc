#include "heed/models/text_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "core/float_environment.h"
#include "heed/core/elementary.h"
#include "heed/core/error.h"
#include "heed/core/random.h"
#include "heed/io/safetensors.h"
#include "heed/models/character_model.h"
#include "heed/nn/state_file.h"
#include "models/settings.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

// Draws the next token with probabilities softmax(logits / temperature).
std::int64_t drawn_token(std::span<const float> logits, double temperature,
                         TorchGenerator& random) {
  const auto largest = std::max_element(logits.begin(), logits.end());
  if (temperature == 0) return largest - logits.begin();
  std::vector<double> sums;
  double sum = 0;
  for (const float logit : logits) {
    sum +=
        elementary::exp((static_cast<double>(logit) - static_cast<double>(*largest)) / temperature);
    sums.push_back(sum);
  }
  const double point = random.rand<double>({1})(0) * sum;
  const auto chosen = std::upper_bound(sums.begin(), sums.end() - 1, point);
  return chosen - sums.begin();
}

std::vector<std::int32_t> short_ids(const text::Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::int32_t> ids;
  for (const std::int64_t id : tokenizer.ids(text)) ids.push_back(static_cast<std::int32_t>(id));
  return ids;
}

// Decodes the ids after a prompt.
std::string text_behind(const text::Tokenizer& tokenizer, std::span<const std::int32_t> prompt,
                        const std::vector<std::int64_t>& ids) {
  const std::vector<std::int64_t> context(prompt.begin(), prompt.end());
  const std::unique_ptr<text::DecodeStream> stream = tokenizer.stream(context);
  std::string text;
  for (const std::int64_t id : ids) text += stream->add(id);
  return text += stream->finish();
}

}  // namespace

TextWriter::TextWriter(CausalTransformer& model, std::span<const std::int32_t> prompt,
                       std::int64_t context, nn::Past nothing)
    : model_(model), context_(context), nothing_(std::move(nothing)), past_(nothing_) {
  if (prompt.empty()) throw InvalidArgument("TextWriter: the prompt is empty");
  if (context < 1 || context > model.max_length()) {
    throw InvalidArgument(
        fmt::format("TextWriter: context is {}, expected 1 to {}, where the "
                    "model's positions end",
                    context, model.max_length()));
  }
  const auto seen = std::min(prompt.size(), static_cast<std::size_t>(context));
  const auto last = prompt.last(seen);
  texts_.emplace_back(last.begin(), last.end());
  model.eval();
}

nn::NextScores<float> TextWriter::begin() {
  const FloatEnvironment environment;
  return read(static_cast<std::int64_t>(texts_.front().size()));
}

nn::NextScores<float> TextWriter::go_on(std::span<const nn::NextToken> next) {
  const FloatEnvironment environment;
  std::vector<std::vector<std::int64_t>> texts;
  std::vector<std::int64_t> chosen;
  for (const auto& [target, token] : next) {
    std::vector<std::int64_t>& text =
        texts.emplace_back(texts_.at(static_cast<std::size_t>(target)));
    if (static_cast<std::int64_t>(text.size()) == context_) text.erase(text.begin());
    text.push_back(token);
    chosen.push_back(target);
  }
  texts_ = std::move(texts);
  if (past_.length() < context_) {
    past_ = past_.picked(chosen);
    return read(1);
  }
  past_ = nothing_.picked(std::vector<std::int64_t>(next.size()));
  return read((context_ + 1) / 2);
}

nn::NextScores<float> TextWriter::read(std::int64_t unseen) {
  const nn::NoGrad no_grad;
  Tensor<std::int64_t> ids({num_targets(), unseen});
  std::int64_t* end = ids.data();
  for (const auto& text : texts_) end = std::copy(text.end() - unseen, text.end(), end);
  const nn::Variable<> logits = model_.continued(past_, ids);
  const std::int64_t vocab_size = logits.extent(2);
  return {reshape(slice(logits, 1, unseen - 1, unseen), {num_targets(), vocab_size}), {}};
}

std::vector<std::int64_t> continue_text(CausalTransformer& model,
                                        std::span<const std::int32_t> prompt,
                                        const TextSampling& sampling) {
  const FloatEnvironment environment;
  TorchGenerator random(sampling.seed);
  TextWriter writer(model, prompt, sampling.context);
  std::vector<std::int64_t> ids;
  nn::NextToken last;
  while (static_cast<std::int64_t>(ids.size()) < sampling.tokens) {
    const auto [logits, weights] = ids.empty() ? writer.begin() : writer.go_on({&last, 1});
    last.token = drawn_token(logits.value().elements(), sampling.temperature, random);
    ids.push_back(last.token);
  }
  return ids;
}

std::vector<std::int64_t> likeliest_text(CausalTransformer& model,
                                         std::span<const std::int32_t> prompt,
                                         const TextBeam& search) {
  const FloatEnvironment environment;
  TextWriter writer(model, prompt, search.context);
  return nn::beam_search(writer, {.beam = search.beam, .max_len = search.tokens}).front().tokens;
}

std::string continue_text(CausalTransformer& model, const text::Tokenizer& tokenizer,
                          std::string_view prompt, const TextSampling& sampling) {
  const FloatEnvironment environment;
  const std::vector<std::int32_t> ids = short_ids(tokenizer, prompt);
  return text_behind(tokenizer, ids, continue_text(model, ids, sampling));
}

std::string likeliest_text(CausalTransformer& model, const text::Tokenizer& tokenizer,
                           std::string_view prompt, const TextBeam& search) {
  const FloatEnvironment environment;
  const std::vector<std::int32_t> ids = short_ids(tokenizer, prompt);
  return text_behind(tokenizer, ids, likeliest_text(model, ids, search));
}

CharacterModel load_character_model(std::filesystem::path path, SettingNames names) {
  if (std::filesystem::is_directory(path)) path /= "model.safetensors";
  Safetensors file = read_safetensors(path);
  const nlohmann::json settings = parse_settings(file.metadata["settings"], "lm", path);
  CharacterModel saved{causal_config(settings, path, names),
                       text::Characters(text_setting(settings, "characters", path)), nullptr};
  if (saved.characters.size() != saved.config.vocab_size) {
    throw std::runtime_error(fmt::format("'{}' has {} characters for a vocabulary of {}",
                                         path.string(), saved.characters.size(),
                                         saved.config.vocab_size));
  }
  saved.model = std::make_unique<CausalTransformer>(saved.config);
  nn::load(path, *saved.model);
  return saved;
}

std::string continue_text(const CharacterModel& model, std::string_view prompt,
                          const TextSampling& sampling) {
  const FloatEnvironment environment;
  TextSampling within = sampling;
  within.context = model.config.context;
  return continue_text(*model.model, model.characters, prompt, within);
}

std::string likeliest_text(const CharacterModel& model, std::string_view prompt,
                           const TextBeam& search) {
  const FloatEnvironment environment;
  TextBeam within = search;
  within.context = model.config.context;
  return likeliest_text(*model.model, model.characters, prompt, within);
}

}}}  // namespace heed::v0::models
