// The paged caches of `heed bench decode`, in any storage.
#include <algorithm>
#include <cstddef>
#include <utility>

#include "bench/decode_cache.h"
#include "core/huge_pages.h"
#include "heed/attention/kv_cache.h"
#include "heed/core/random.h"
#include "heed/core/tensor.h"

namespace heed::cli {

namespace {

// Sequences of equal length, which may share their first pages, in several copies.
class PagedCache final : public DecodeCache {
 public:
  PagedCache(const DecodeCase& one, std::int64_t cold_bytes)
      : config_{.num_kv_heads = one.kv_heads,
                .head_dim = one.head_dim,
                .key_storage = parse_kv_storage(one.storage),
                .value_storage = parse_kv_storage(one.storage),
                .page_size = one.page} {
    TorchGenerator random(0);
    query_ = random.randn({one.batch, one.heads, one.head_dim});
    for (std::int64_t b = 0; b <= one.batch; ++b) boundaries_.push_back(b);
    do {
      copies_.push_back(std::make_unique<Copy>(config_, one, random));
      const KvPool& pool = copies_.back()->pool;
      bytes_ = pool.pages_in_use() * pool.page_bytes();
    } while (static_cast<std::int64_t>(copies_.size()) * bytes_ < cold_bytes);
  }

  std::int64_t bytes() const override { return bytes_; }

  void attend() override {
    next_ = (next_ + 1) % copies_.size();
    heed::attend(query_.view(), KvBatch{copies_[next_]->handles, boundaries_});
  }

  // Returns other memory of the same kind and size as the pages, because a pool does not expose its
  // own.
  Parts next_parts() override {
    next_ = (next_ + 1) % copies_.size();
    const auto size = static_cast<std::size_t>(bytes_);
    if (read_ == nullptr) {
      const std::size_t all = copies_.size() * size;
      read_ = allocate_in_huge_pages(all);
      std::fill_n(read_.get(), all, std::byte{1});
    }
    return {std::span<const std::byte>(read_.get() + next_ * size, size)};
  }

 private:
  struct Copy {
    Copy(const KvConfig& config, const DecodeCase& one, TorchGenerator& random) : pool(config) {
      constexpr std::int64_t kSome = 1024;
      constexpr std::int64_t kGrowth = 16;
      const auto some = random.randn({one.kv_heads, std::min(kSome, one.kv_seq), one.head_dim});
      const auto extend = [&](KvSequence& sequence, std::int64_t length) {
        while (sequence.length() < length) {
          const std::int64_t count = std::min(kSome, length - sequence.length());
          const auto part = some.view().slice(1, 0, count);
          sequence.append(part, part);
        }
      };
      KvSequence beginning(pool);
      extend(beginning, one.shared_prefix);
      for (std::int64_t b = 0; b < one.batch; ++b) sequences.push_back(beginning.fork());
      // The sequences grow alternately, as texts that are written at the same time.
      for (std::int64_t at = one.shared_prefix; at < one.kv_seq;) {
        at = std::min(at + kGrowth, one.kv_seq);
        for (KvSequence& sequence : sequences) extend(sequence, at);
      }
      for (const KvSequence& sequence : sequences) handles.push_back(&sequence);
    }

    KvPool pool;
    std::vector<KvSequence> sequences;
    std::vector<const KvSequence*> handles;
  };

  KvConfig config_;
  Tensor<float> query_;
  std::vector<std::int64_t> boundaries_;
  std::vector<std::unique_ptr<Copy>> copies_;
  std::int64_t bytes_ = 0;
  AlignedBytes read_;
  std::size_t next_ = 0;
};

}  // namespace

std::unique_ptr<DecodeCache> make_paged_cache(const DecodeCase& one, std::int64_t cold_bytes) {
  return std::make_unique<PagedCache>(one, cold_bytes);
}

}  // namespace heed::cli
