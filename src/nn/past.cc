#include "heed/nn/past.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "heed/core/error.h"

namespace heed { inline namespace v0 { namespace nn {

namespace {

std::size_t checked_index(std::int64_t index, const char* function, const char* what,
                          std::size_t count) {
  if (index >= 0 && static_cast<std::size_t>(index) < count) return static_cast<std::size_t>(index);
  throw InvalidArgument(
      fmt::format("Past::{}: {} is {}, expected one of {}", function, what, index, count));
}

std::vector<KvSequence> empty_layers(KvPool& pool, std::int64_t num_layers) {
  std::vector<KvSequence> layers;
  for (std::int64_t i = 0; i < num_layers; ++i) layers.emplace_back(pool);
  return layers;
}

}  // namespace

Past::Past(std::vector<KvSequence> layers) : num_texts_(1) {
  if (layers.empty()) throw InvalidArgument("Past: there are no layers, expected at least one");
  for (KvSequence& layer : layers) {
    if (layer.length() != layers.front().length()) {
      throw InvalidArgument(fmt::format("Past: layers have {} and {} positions, expected as many",
                                        layers.front().length(), layer.length()));
    }
  }
  for (KvSequence& layer : layers) layers_.emplace_back().push_back(std::move(layer));
}

Past::Past(KvPool& pool, std::int64_t num_layers) : Past(empty_layers(pool, num_layers)) {}

Past::Past(const Past& other) {
  std::vector<std::int64_t> all(other.num_texts_);
  std::iota(all.begin(), all.end(), 0);
  *this = other.picked(all);
}

Past& Past::operator=(const Past& other) { return *this = Past(other); }

std::int64_t Past::length() const {
  if (num_texts_ > 0 && !layers_.empty()) return layers_.front().front().length();
  throw InvalidArgument("Past::length: there is no text, or it was moved from");
}

std::span<KvSequence> Past::layer(std::int64_t index) {
  return layers_[checked_index(index, "layer", "index", layers_.size())];
}

std::span<const KvSequence> Past::layer(std::int64_t index) const {
  return layers_[checked_index(index, "layer", "index", layers_.size())];
}

Past Past::picked(std::span<const std::int64_t> texts) const {
  Past result;
  for (const std::vector<KvSequence>& layer : layers_) {
    std::vector<KvSequence>& forks = result.layers_.emplace_back();
    forks.reserve(texts.size());
    for (const std::int64_t text : texts) {
      forks.push_back(layer[checked_index(text, "picked", "a text", num_texts_)].fork());
    }
  }
  result.num_texts_ = texts.size();
  return result;
}

void Past::truncate(std::int64_t n) {
  for (std::vector<KvSequence>& layer : layers_) {
    for (KvSequence& text : layer) text.truncate(n);
  }
}

}}}  // namespace heed::v0::nn
