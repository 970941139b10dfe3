#include "bench/decode_cache.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "heed/attention.h"
#include "heed/attention/plan.h"
#include "heed/core/data_type.h"
#include "heed/core/random.h"
#include "heed/core/tensor.h"

namespace heed::cli {

namespace {

// Sequences at least this long are read from memory, as in a model that read its other layers in
// between; shorter ones from the processor's caches.
constexpr std::int64_t kLongSequence = 4096;

// Returns a number of bytes that exceeds the processor's last cache, for long sequences: twice the
// size that the system reports, but at most this limit, because a shared machine reports the cache
// of all its guests.
std::int64_t cold_bytes(const DecodeCase& one) {
  if (one.kv_seq < kLongSequence) return 1;
  constexpr std::int64_t kMost = std::int64_t{512} << 20;
  constexpr std::int64_t kUnknown = std::int64_t{64} << 20;
  const std::int64_t last = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return std::min(2 * (last > 0 ? last : kUnknown), kMost);
}

// Returns standard normal numbers, repeated after a million, which does not affect the time.
template <class T>
Tensor<T> numbers(const Shape& shape, TorchGenerator& random) {
  auto tensor = Tensor<T>::uninitialized(shape);
  const auto elements = tensor.elements();
  const auto drawn = random.randn(
      {std::clamp<std::int64_t>(static_cast<std::int64_t>(elements.size()), 1, 1 << 20)});
  for (std::size_t i = 0; i < elements.size(); ++i) {
    elements[i] = static_cast<T>(drawn.elements()[i % drawn.elements().size()]);
  }
  return tensor;
}

// Holds tensors [batch, kv_heads, kv_seq, head_dim], each head contiguous.
template <class T>
class TensorCache final : public DecodeCache {
 public:
  explicit TensorCache(const DecodeCase& one)
      : bytes_(2 * one.batch * one.kv_heads * one.kv_seq * one.head_dim *
               static_cast<std::int64_t>(sizeof(T))),
        plan_(plan({.batch = one.batch,
                    .num_heads = one.heads,
                    .num_kv_heads = one.kv_heads,
                    .q_len = 1,
                    .kv_len = one.kv_seq,
                    .head_dim = one.head_dim,
                    .value_dim = one.head_dim,
                    .dtype = data_type_of<T>(),
                    .key_stride = one.head_dim,
                    .value_stride = one.head_dim})) {
    TorchGenerator random(0);
    query_ = numbers<T>({one.batch, one.heads, 1, one.head_dim}, random);
    out_ = Tensor<T>(query_.shape());
    const Shape shape{one.batch, one.kv_heads, one.kv_seq, one.head_dim};
    const std::int64_t copies = (cold_bytes(one) - 1) / bytes_ + 1;
    for (std::int64_t i = 0; i < copies; ++i) {
      copies_.emplace_back(numbers<T>(shape, random), numbers<T>(shape, random));
    }
  }

  std::int64_t bytes() const override { return bytes_; }

  void attend() override {
    const Copy& copy = next();
    plan_.run_into({.out = out_.view()}, query_.view(), copy.first.view(), copy.second.view());
  }

  Parts next_parts() override {
    const Copy& copy = next();
    return {std::as_bytes(copy.first.elements()), std::as_bytes(copy.second.elements())};
  }

 private:
  using Copy = std::pair<Tensor<T>, Tensor<T>>;

  const Copy& next() {
    next_ = (next_ + 1) % copies_.size();
    return copies_[next_];
  }

  std::int64_t bytes_;
  AttentionPlan plan_;
  Tensor<T> query_;
  Tensor<T> out_;
  std::vector<Copy> copies_;
  std::size_t next_ = 0;
};

}  // namespace

std::unique_ptr<DecodeCache> make_decode_cache(const DecodeCase& one) {
  if (one.page > 0) return make_paged_cache(one, cold_bytes(one));
  if (one.storage == "float16") return std::make_unique<TensorCache<Float16>>(one);
  if (one.storage == "bfloat16") return std::make_unique<TensorCache<BFloat16>>(one);
  return std::make_unique<TensorCache<float>>(one);
}

}  // namespace heed::cli
