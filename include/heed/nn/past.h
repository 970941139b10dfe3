/// The cache of a decoder, with which the time per token is linear in the number of earlier tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "heed/attention/kv_cache.h"
#include "heed/core/config.h"

namespace heed { inline namespace v0 { namespace nn {

/// The keys and values of one or several texts of the same length: a KvSequence for each layer and
/// text. A copy consists of forks: it shares pages with the original, and a page is copied before
/// either writes to it.
class HEED_API Past {
 public:
  /// A past of one text: the sequences of the layers, which are equally long.
  /// @throws InvalidArgument when there is none, or lengths differ.
  explicit Past(std::vector<KvSequence> layers);
  /// A past of one text without tokens; all layers use the pages of one pool.
  /// @throws InvalidArgument when num_layers is not positive.
  Past(KvPool& pool, std::int64_t num_layers);
  Past(const Past& other);
  Past& operator=(const Past& other);
  Past(Past&&) noexcept = default;
  Past& operator=(Past&&) noexcept = default;
  ~Past() = default;

  std::int64_t num_layers() const noexcept { return static_cast<std::int64_t>(layers_.size()); }
  std::int64_t num_texts() const noexcept { return static_cast<std::int64_t>(num_texts_); }
  /// The number of tokens of each text. @throws InvalidArgument when this was moved from.
  std::int64_t length() const;

  /// The sequences of a layer, one for each text. @throws InvalidArgument when the layer does not
  /// exist.
  std::span<KvSequence> layer(std::int64_t index);
  std::span<const KvSequence> layer(std::int64_t index) const;

  /// A past whose text i is text texts[i] of this one: a beam search continues its selected
  /// hypotheses with it. A text may be chosen several times, or not at all.
  /// @throws InvalidArgument when a text does not exist.
  Past picked(std::span<const std::int64_t> texts) const;
  /// Keeps the first n tokens of each text. @throws InvalidArgument as KvSequence::truncate.
  void truncate(std::int64_t n);

 private:
  Past() = default;

  std::vector<std::vector<KvSequence>> layers_;  // [layer][text]
  std::size_t num_texts_ = 0;
};

}}}  // namespace heed::v0::nn
