#include "attention/cache/shared_states.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "attention/cache/sequence_state.h"
#include "attention/cache/shared_prefixes.h"

namespace heed { inline namespace v0 { namespace detail {

namespace {

using kernels::kChunkKeys;
using Calls = std::span<ForwardCall<float>>;

// The first pages of a sequence, in whole chunks of which every row sees every key. None if the
// rows fill a panel by themselves, as arithmetic then takes longer than reading keys.
std::span<Page* const> pages_to_share(const ForwardCall<float>& call, const SequenceState& state,
                                      std::int64_t rows_that_continue) {
  const Request<float>& request = *call.request;
  if (request.rows_per_kv_head() >= rows_that_continue || state.has_gap()) return {};
  std::int64_t keys = request.shape.kv_len;
  const std::int64_t heads = request.mask.depends_on_head() ? request.shape.num_heads : 1;
  for (std::int64_t h = 0; h < heads; ++h) {
    for (std::int64_t q = 0; q < request.shape.q_len; ++q) {
      const RowRange seen = request.mask.range({0, h, q});
      keys = std::min(keys, seen.begin == 0 ? seen.end : 0);
    }
  }
  const std::int64_t pages = keys / kChunkKeys * (kChunkKeys / state.pool->layout().page_size);
  return std::span(state.pages.pages()).first(static_cast<std::size_t>(pages));
}

// The rows of the calls that share something, call after call.
class SharedRows {
 public:
  SharedRows(Calls calls, const std::vector<std::size_t>& order) : calls_(calls), order_(order) {
    for (const std::size_t i : order) first_.push_back(first_.back() + queries_of(calls[i]));
    const Request<float>& request = *calls[order.front()].request;
    const AttentionShapes& shapes = request.shape;
    const std::int64_t rows = checked_multiply(shapes.num_heads, first_.back());
    query_.type = shapes.dtype;
    query_.row_stride = shapes.head_dim * size_of(shapes.dtype);
    query_.head_stride = query_.row_stride * first_.back();
    states_.row_stride = RowStates<float>::size_of_row(shapes.value_dim);
    states_.head_stride = states_.row_stride * first_.back();
    query_memory_ = layout_.add<std::byte>(checked_multiply(rows, query_.row_stride));
    state_memory_ = layout_.add<float>(checked_multiply(rows, states_.row_stride));
  }

  const engine::Layout& layout() const { return layout_; }

  // Copies the queries to memory of this layout.
  void copy_to(std::byte* memory) {
    query_.data = query_memory_.in(memory);
    states_.data = state_memory_.in(memory);
    const auto bytes = static_cast<std::size_t>(query_.row_stride);
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const ForwardCall<float>& call = calls_[order_[i]];
      for (std::int64_t h = 0; h < call.request->shape.num_heads; ++h) {
        for (std::int64_t q = 0; q < queries_of(call); ++q) {
          std::memcpy(query_.row(0, h, first_[i] + q), call.query.row(0, h, q), bytes);
        }
      }
    }
  }

  // Computes the prefixes of a level, after those of earlier levels.
  void compute(const std::vector<SharedPrefix>& level) const {
    std::vector<Request<float>> requests;
    std::vector<const Request<float>*> planned;
    std::vector<ForwardCall<float>> jobs;
    requests.reserve(level.size());
    planned.reserve(level.size());
    jobs.reserve(level.size());
    for (const SharedPrefix& prefix : level) {
      requests.push_back(request_of(prefix));
      planned.push_back(&requests.back());
      jobs.push_back(job_of(prefix, requests.back()));
      for (std::int64_t i = prefix.members.begin; i < prefix.members.end; ++i) {
        member(i).continuation = {states_of(i), prefix.stretches.end * kChunkKeys};
      }
    }
    prepare_together<float>(planned, Pass::kForward)->forward(jobs);
  }

 private:
  static std::int64_t queries_of(const ForwardCall<float>& call) {
    return call.request->shape.q_len;
  }
  ForwardCall<float>& member(std::int64_t i) const {
    return calls_[order_[static_cast<std::size_t>(i)]];
  }
  std::int64_t first(std::int64_t i) const { return first_[static_cast<std::size_t>(i)]; }
  RowStates<float> states_of(std::int64_t i) const {
    RowStates<float> states = states_;
    states.data = states_.row(0, first(i));
    return states;
  }

  // The request for the queries of all members, which see every key of the prefix.
  Request<float> request_of(const SharedPrefix& prefix) const {
    const Request<float>& one = *member(prefix.members.begin).request;
    AttentionShapes shapes = one.shape;
    shapes.q_len = first(prefix.members.end) - first(prefix.members.begin);
    shapes.kv_len = prefix.stretches.end * kChunkKeys;
    Request<float> request =
        check_request<float>("attend", shapes, {.scale = one.scale, .precision = one.precision});
    request.has_key_source = true;
    request.key_storage = one.key_storage;
    request.value_storage = one.value_storage;
    return request;
  }

  ForwardCall<float> job_of(const SharedPrefix& prefix, const Request<float>& request) const {
    ForwardCall<float> job;
    job.request = &request;
    job.query = {query_.row(0, 0, first(prefix.members.begin)), query_.type, 0, query_.head_stride,
                 query_.row_stride};
    job.batches = {0, 1};
    job.keys = member(prefix.members.begin).keys;
    job.continuation = {.states = states_of(prefix.members.begin),
                        .first_key = prefix.stretches.begin * kChunkKeys,
                        .leaves_states = true};
    return job;
  }

  Calls calls_;
  const std::vector<std::size_t>& order_;
  // The index of the first query of each call, and the end of the last.
  std::vector<std::int64_t> first_{0};
  engine::Layout layout_;
  engine::Piece<std::byte> query_memory_;
  engine::Piece<float> state_memory_;
  MutableRows query_;
  RowStates<float> states_;
};

}  // namespace

void SharedStates::compute(Calls calls, std::span<const PagedKeys> keys,
                           const Prepared<float>& pass) {
  if (calls.size() < 2 || pass.rows_that_continue() == 0) return;
  std::vector<std::span<Page* const>> beginnings;
  beginnings.reserve(calls.size());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    beginnings.push_back(pages_to_share(calls[i], keys[i].sequence(), pass.rows_that_continue()));
  }
  const std::int64_t page_size = keys.front().sequence().pool->layout().page_size;
  const SharedPrefixes prefixes = find_shared_prefixes(beginnings, kChunkKeys / page_size);
  if (prefixes.order.empty()) return;
  SharedRows rows(calls, prefixes.order);
  arena_.emplace(rows.layout());
  rows.copy_to(arena_->memory());
  for (const std::vector<SharedPrefix>& level : prefixes.levels) rows.compute(level);
}

}}}  // namespace heed::v0::detail
