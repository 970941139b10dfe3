// Attention from oneDNN's primitives: matmul, softmax, matmul. Threads divide the blocks, so each
// primitive runs on one thread.
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <tuple>

#include "blocked.h"

namespace heed::peers { namespace {

using dnnl::memory;

// Limits OpenMP to one thread here, and restores the number afterwards: PyTorch shares the setting.
class OneOpenMpThread {
 public:
  OneOpenMpThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneOpenMpThread() { omp_set_num_threads(before_); }
  OneOpenMpThread(const OneOpenMpThread&) = delete;
  OneOpenMpThread& operator=(const OneOpenMpThread&) = delete;

 private:
  int before_;
};

memory::desc matrix(std::int64_t rows, std::int64_t columns, bool is_transposed = false) {
  return {{rows, columns},
          memory::data_type::f32,
          is_transposed ? memory::dims{1, rows} : memory::dims{columns, 1}};
}

// The three primitives for one thread and blocks of one size; they share the thread's scratchpad.
class Primitives {
 public:
  Primitives(const dnnl::engine& engine, std::int64_t rows, std::int64_t keys, std::int64_t dim)
      : query_(matrix(rows, dim), engine, nullptr),
        key_(matrix(dim, keys, true), engine, nullptr),
        scores_(matrix(rows, keys), engine, nullptr),
        value_(matrix(keys, dim), engine, nullptr),
        out_(matrix(rows, dim), engine, nullptr) {
    dnnl::primitive_attr scaled;
    scaled.set_output_scales(0, {1 / std::sqrt(static_cast<float>(dim))});
    score_ =
        dnnl::matmul({{query_.get_desc(), key_.get_desc(), scores_.get_desc()}, scaled, engine});
    softmax_ = dnnl::softmax_forward(
        {{dnnl::prop_kind::forward_inference, scores_.get_desc(), 1}, engine});
    weigh_ = dnnl::matmul({{scores_.get_desc(), value_.get_desc(), out_.get_desc()}, engine});
  }

  template <class Mask>
  void run(dnnl::stream& stream, const Block& block, float* scores, const Mask& mask) {
    query_.set_data_handle(const_cast<float*>(block.query));
    key_.set_data_handle(const_cast<float*>(block.key));
    value_.set_data_handle(const_cast<float*>(block.value));
    scores_.set_data_handle(scores);
    out_.set_data_handle(block.out);
    score_.execute(stream,
                   {{DNNL_ARG_SRC, query_}, {DNNL_ARG_WEIGHTS, key_}, {DNNL_ARG_DST, scores_}});
    mask();
    softmax_.execute(stream, {{DNNL_ARG_SRC, scores_}, {DNNL_ARG_DST, scores_}});
    weigh_.execute(stream,
                   {{DNNL_ARG_SRC, scores_}, {DNNL_ARG_WEIGHTS, value_}, {DNNL_ARG_DST, out_}});
  }

 private:
  memory query_;
  memory key_;
  memory scores_;
  memory value_;
  memory out_;
  dnnl::matmul score_;
  dnnl::softmax_forward softmax_;
  dnnl::matmul weigh_;
};

void compute(const PeersProblem& problem, const Block& block, float* scores) {
  thread_local dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  thread_local dnnl::stream stream(engine);
  thread_local std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, Primitives>
      primitives;
  const OneOpenMpThread one_thread;
  const auto size = std::make_tuple(block.rows, block.keys, problem.dim);
  auto found = primitives.find(size);
  if (found == primitives.end()) {
    found = primitives.emplace(size, Primitives(engine, block.rows, block.keys, problem.dim)).first;
  }
  found->second.run(stream, block, scores, [&] {
    if (!is_causal(problem)) return;
    for (std::int64_t r = 0; r < block.rows; ++r) {
      float* row = scores + r * block.keys;
      std::fill(row + block.first_row + r + 1, row + block.keys,
                -std::numeric_limits<float>::infinity());
    }
  });
}

}  // namespace

}  // namespace heed::peers

extern "C" void peers_onednn(const PeersProblem* problem) {
  heed::peers::for_each_block(*problem, [&](const heed::peers::Block& block, float* scores) {
    heed::peers::compute(*problem, block, scores);
  });
}
