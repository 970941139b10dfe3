#include "text/gguf_splits.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "text/split_patterns.h"

namespace heed { inline namespace v0 { namespace text {
namespace {

using namespace split_patterns;  // NOLINT(google-build-using-namespace): the table's words

// Converters write "default" for models that they do not know; GPT-2's pattern is the likeliest.
const std::vector<GgufSplit>& gguf_splits() {
  static const std::vector<GgufSplit> kSplits{
      {"default", {kGpt2}},
      {"gpt-2", {kGpt2}},
      {"phi-2", {kGpt2}},
      {"jina-es", {kGpt2}},
      {"jina-de", {kGpt2}},
      {"jina-v2-es", {kGpt2}},
      {"jina-v2-de", {kGpt2}},
      {"jina-v1-en", {kGpt2}},
      {"jina-v2-code", {kGpt2}},
      {"roberta-bpe", {kGpt2}},
      {"gigachat", {kGpt2}},
      {"a.x-4.0", {kGpt2}},
      {"mellum", {kGpt2}},
      {"mpt", {kGpt2}},
      {"olmo", {kGpt2}},
      {"jais", {kGpt2}},
      {"trillion", {kGpt2}},
      {"exaone4", {kGpt2}},
      {"smollm", {kNumber, kGpt2}},
      {"starcoder", {kNumber, kGpt2}},
      {"refact", {kNumber, kGpt2}},
      {"command-r", {kNumber, kGpt2}},
      {"codeshell", {kNumber, kGpt2}},
      {"exaone", {kNumber, kGpt2}},
      {"minerva-7b", {kNumber, kGpt2}},
      {"llama-bpe", {kLlama3}, true, true},
      {"llama3", {kLlama3}, true, true},
      {"llama-v3", {kLlama3}, true, true},
      {"falcon3", {kLlama3}, true, true},
      {"falcon-h1", {kLlama3}, true, true},
      {"pixtral", {kLlama3}, true, true},
      {"midm-2.0", {kLlama3}, true, true},
      {"lfm2", {kLlama3}, true, true},
      {"dbrx", {kLlama3}},
      {"smaug-bpe", {kLlama3}},
      {"glm4", {kLlama3}},
      {"chatglm-bpe", {kLlama3}},
      {"qwen2", {kQwen2}},
      {"deepseek-r1-qwen", {kQwen2}},
      {"stablelm2", {kQwen2}},
      {"megrez", {kQwen2}},
      {"hunyuan", {kQwen2}},
      {"tekken", {kTekken}, true, true},
      {"gpt-4o", {kGpt4o}},
      {"llama4", {kGpt4o}},
      {"deepseek-llm",
       {kLineBreak, kDeepSeekLetters, kDeepSeekMarks, kTrailingSpace, kDeepSeekHan, kNumbers}},
      {"deepseek-coder", {kLineBreak, kSpacedLetters, kSpacedPunctuation, kDeepSeekHan, kNumber}},
      {"deepseek-v3", {kThreeNumbers, kDeepSeekV3Han, kDeepSeekV3}},
      {"hunyuan-dense", {kThreeNumbers, kDeepSeekV3Han, kDeepSeekV3}},
      {"falcon", {kPunctuation, kGpt2, kThreeDigits}},
      {"bloom", {kBloom}},
      {"poro-chat", {kBloom}},
      {"gpt3-finnish", {kBloom}},
      {"viking", {kBloom, kNumber}},
      {"bailingmoe", {kBailing}},
      {"seed-coder", {kSeedCoder}}};
  return kSplits;
}

}  // namespace

const GgufSplit* find_gguf_split(std::string_view name) {
  const std::vector<GgufSplit>& all = gguf_splits();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [name](const GgufSplit& split) { return split.name == name; });
  return found == all.end() ? nullptr : &*found;
}

std::string gguf_split_names() {
  std::string names;
  for (const GgufSplit& split : gguf_splits()) {
    names.append(names.empty() ? "" : ", ").append(split.name);
  }
  return names;
}

PreTokenizer pre_tokenizer_of(const GgufSplit& split) {
  std::vector<PatternSplit> splits;
  for (const std::string_view pattern : split.patterns) {
    splits.push_back({std::make_shared<const Pattern>(pattern)});
  }
  return [splits = std::move(splits)](PreTokenized& text) {
    for (const PatternSplit& each : splits) split_pattern(text, each);
    split_byte_level(text, {false, false});
  };
}

}}}  // namespace heed::v0::text
