#include "models/sealing.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "heed/attention/kv_storage.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

using io::Sha256;
using io::Sha256Digest;

constexpr std::size_t kOptionDigits = 16;  // of the hash of a text among the options

std::string first_digits(const Sha256Digest& digest, std::size_t count) {
  return io::to_hex(digest).substr(0, count);
}

Sha256Digest hash_of_ids(std::span<const std::int64_t> ids) {
  Sha256 hash;
  for (const std::int64_t id : ids) hash.add_integer(id);
  return hash.finish();
}

// Each text after its length in bytes.
Sha256Digest hash_of_texts(std::span<const std::string> texts) {
  Sha256 hash;
  for (const std::string& text : texts) {
    hash.add_integer(static_cast<std::int64_t>(text.size())).add(std::string_view(text));
  }
  return hash.finish();
}

std::vector<SealOption> sealed_options(const GenerateOptions& options) {
  const Sampling& sampling = options.sampling;
  std::vector<SealOption> all{{"n", fmt::format("{}", options.max_tokens)}};
  const auto add = [&](const char* name, const auto& value, const auto& otherwise) {
    if (value != otherwise) all.push_back({name, fmt::format("{}", value)});
  };
  // Adding 0 makes 0 of −0, which is the same temperature.
  add("t", sampling.temperature + 0.0, 0.0);
  add("k", sampling.top_k, 0);
  add("p", sampling.top_p, 1.0);
  add("s", options.seed, 0U);
  add("m", sampling.min_p + 0.0, 0.0);
  add("r", options.repetition_penalty, 1.0);
  add("key", heed::to_string(options.past.key_storage), heed::to_string(KvStorage::kFloat32));
  add("value", heed::to_string(options.past.value_storage), heed::to_string(KvStorage::kFloat32));
  if (!options.stop.empty()) {
    all.push_back({"stop", first_digits(hash_of_texts(options.stop), kOptionDigits)});
  }
  // As texts, so that each number is there in full.
  const auto add_numbers = [&](const char* name, const std::vector<std::string>& numbers) {
    if (!numbers.empty()) {
      all.push_back({name, first_digits(hash_of_texts(numbers), kOptionDigits)});
    }
  };
  std::vector<std::string> biases;
  for (const auto& [id, bias] : options.logit_bias)
    biases.push_back(fmt::format("{}={}", id, bias));
  add_numbers("bias", biases);
  std::vector<std::string> ends;
  for (const std::int64_t id : options.end_ids) ends.push_back(fmt::format("{}", id));
  add_numbers("end", ends);
  return all;
}

std::string_view name_of_pooling(Pooling::Kind kind) {
  switch (kind) {
    case Pooling::Kind::kMean:
      return "mean";
    case Pooling::Kind::kFirstToken:
      return "cls";
    case Pooling::Kind::kLastToken:
      return "lasttoken";
    case Pooling::Kind::kMax:
      return "max";
    case Pooling::Kind::kMeanSqrtLength:
      return "mean_sqrt_len_tokens";
    case Pooling::Kind::kWeightedMean:
      break;
  }
  return "weightedmean";
}

std::vector<SealOption> sealed_options(const Pooling& pooling) {
  std::string kinds;
  for (const Pooling::Kind kind : pooling.kinds) {
    kinds += fmt::format("{}{}", kinds.empty() ? "" : "+", name_of_pooling(kind));
  }
  std::vector<SealOption> all{{"pool", kinds}};
  if (pooling.normalize) all.push_back({"norm", "1"});
  if (pooling.max_tokens != kUnbounded) {
    all.push_back({"max", fmt::format("{}", pooling.max_tokens)});
  }
  if (!pooling.prompt.empty()) {
    const Sha256Digest digest = Sha256().add(std::string_view(pooling.prompt)).finish();
    all.push_back({"prompt", first_digits(digest, kOptionDigits)});
  }
  return all;
}

// Adds the hash of everything.
Seal completed(Seal seal, const std::string& model, const Sha256Digest& input,
               const Sha256Digest& steps, const Sha256Digest& output) {
  seal.output = first_digits(output, kShortDigits);
  const Sha256Digest all =
      Sha256().add(inputs_text(seal)).add(model).add(input).add(steps).add(output).finish();
  seal.all = base64(all, kAllDigits);
  return seal;
}

}  // namespace

Seal begun_seal(const Model& model, std::span<const std::int64_t> prompt,
                const GenerateOptions& options) {
  return {.kind = SealKind::kGenerate,
          .model = model.sha256().substr(0, kModelDigits),
          .input = first_digits(hash_of_ids(prompt), kShortDigits),
          .options = sealed_options(options)};
}

Seal begun_seal(const Model& model, std::span<const std::string> texts) {
  return {.kind = SealKind::kEmbed,
          .model = model.sha256().substr(0, kModelDigits),
          .input = first_digits(hash_of_texts(texts), kShortDigits),
          .options = sealed_options(model.config().pooling.value_or(Pooling{}))};
}

TextSealer::TextSealer(const Model& model, std::span<const std::int64_t> prompt,
                       const GenerateOptions& options)
    : seal_(begun_seal(model, prompt, options)),
      model_(model.sha256()),
      input_(hash_of_ids(prompt)) {}

void TextSealer::add(std::span<const float> logits, std::int64_t id) {
  const Sha256Digest seen = Sha256().add(steps_).add_floats(logits).finish();
  steps_ = Sha256().add(seen).add_integer(id).finish();
  seal_.steps += base64(seen, 1) + base64(steps_, 1);
}

Seal TextSealer::finish(std::string_view text, EndReason reason) {
  const Sha256Digest output = Sha256().add(to_string(reason)).add("\n").add(text).finish();
  return completed(std::move(seal_), model_, input_, steps_, output);
}

Seal sealed_vectors(const Model& model, std::span<const std::string> texts, FloatView vectors) {
  Seal seal = begun_seal(model, texts);
  Sha256 all;
  for (std::int64_t i = 0; i < vectors.extent(0); ++i) {
    const Sha256Digest digest = Sha256().add_floats(vectors.select(0, i).elements()).finish();
    seal.steps += base64(digest, 2);
    all.add(digest);
  }
  const Sha256Digest output = all.finish();
  return completed(std::move(seal), model.sha256(), hash_of_texts(texts), output, output);
}

}}}  // namespace heed::v0::models
