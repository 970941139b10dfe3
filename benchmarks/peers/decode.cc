// heed's caches as C functions, for decode.py to call.
#include <algorithm>
#include <stdexcept>
#include <string>

#include "heed/kv_cache.h"
#include "heed/tensor.h"
#include "problem.h"

namespace heed::peers {

namespace {

KvStorage storage_named(const std::string& name) {
  for (const KvStorage storage : {KvStorage::kFloat32, KvStorage::kFloat16, KvStorage::kBFloat16,
                                  KvStorage::kInt8, KvStorage::kInt4}) {
    if (to_string(storage) == name) return storage;
  }
  throw std::invalid_argument("no storage is named " + name);
}

KvSequence filled(const PeersDecode& problem, KvStorage storage) {
  KvSequence sequence({.num_kv_heads = problem.num_kv_heads,
                       .head_dim = problem.dim,
                       .key_storage = storage,
                       .value_storage = storage});
  const Shape shape{problem.num_kv_heads, problem.kv_len, problem.dim};
  sequence.append(FloatView(problem.key, shape), FloatView(problem.value, shape));
  return sequence;
}

}  // namespace

}  // namespace heed::peers

// A sequence of that storage, to be given back to peers_decode_free.
extern "C" void* peers_decode_sequence(const PeersDecode* problem, const char* storage) {
  return new heed::KvSequence(heed::peers::filled(*problem, heed::peers::storage_named(storage)));
}

extern "C" void peers_decode_free(void* sequence) {
  delete static_cast<heed::KvSequence*>(sequence);
}

extern "C" void peers_decode_heed(const PeersDecode* problem, const void* sequence) {
  const heed::FloatView query(problem->query, {1, problem->num_heads, 1, problem->dim});
  const auto out = heed::attend(query, *static_cast<const heed::KvSequence*>(sequence));
  std::copy(out.elements().begin(), out.elements().end(), problem->out);
}
