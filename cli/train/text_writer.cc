#include "train/text_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "heed/error.h"

namespace heed::cli {

TextWriter::TextWriter(CausalModel& model, std::span<const std::int32_t> prompt,
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
  return read(static_cast<std::int64_t>(texts_.front().size()));
}

nn::NextScores<float> TextWriter::go_on(std::span<const nn::NextToken> next) {
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

}  // namespace heed::cli
