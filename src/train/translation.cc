#include <utility>

#include "heed/nn/special_tokens.h"
#include "heed/train/translator.h"

namespace heed { inline namespace v0 { namespace train {

Translation translate(Translator& translator, const std::string& sentence, std::int64_t beam) {
  Translation result;
  const text::Tokenizer& source = translator.source;
  const text::Tokenizer& target = translator.target;
  text::Encoding encoding = source.encode(sentence);
  if (encoding.ids.empty()) return result;
  for (std::size_t i = 0; i < encoding.ids.size(); ++i) {
    const auto [begin, end] = encoding.ranges[i];
    result.source.push_back(
        sentence.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
    if (encoding.ids[i] == kUnknownId) result.unknown.push_back(result.source.back());
  }
  const Tensor<std::int64_t> src({static_cast<std::int64_t>(encoding.ids.size())}, encoding.ids);
  result.hypothesis =
      std::move(nn::beam_search(*translator.model, src,
                                {.beam = beam, .max_len = translator.settings.model.max_len})
                    .front());
  result.target = target.tokens(result.hypothesis.tokens);
  result.text = target.decode(result.hypothesis.tokens);
  return result;
}

}}}  // namespace heed::v0::train
