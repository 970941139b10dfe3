// heed's caches as C functions, for python/heed/bench/library.py to call.
#include <algorithm>

#include "heed/attention/kv_cache.h"
#include "heed/core/tensor.h"
#include "problem.h"

namespace heed::peers { namespace {

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

// Returns a sequence with that storage; free it with peers_decode_free.
extern "C" void* peers_decode_sequence(const PeersDecode* problem, const char* storage) {
  return new heed::KvSequence(heed::peers::filled(*problem, heed::parse_kv_storage(storage)));
}

extern "C" void peers_decode_free(void* sequence) {
  delete static_cast<heed::KvSequence*>(sequence);
}

extern "C" void peers_decode_heed(const PeersDecode* problem, const void* sequence) {
  const heed::FloatView query(problem->query, {1, problem->num_heads, 1, problem->dim});
  const auto out = heed::attend(query, *static_cast<const heed::KvSequence*>(sequence));
  std::copy(out.elements().begin(), out.elements().end(), problem->out);
}
