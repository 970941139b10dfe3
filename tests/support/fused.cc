#include "support/fused.h"

#include <algorithm>
#include <utility>

#include "attention/engine/kept_weights.h"
#include "attention/plan/fused.h"
#include "attention/request/call.h"
#include "heed/attention/reference.h"
#include "heed/core/parallel.h"
#include "support/exact.h"
#include "support/tensors.h"

namespace heed::testing_support {

namespace {

std::string inaccuracy(const char* name, const Tensor<float>& found, const Tensor<float>& plain,
                       const Tensor<double>& exact, double roundings) {
  const Judgement judge{.always_allowed =
                            roundings * 0x1p-24 * std::max(1.0, largest_magnitude(exact))};
  return judge(name, found, plain, exact);
}

template <class T>
Request<float> request_of(const BasicInputViews<T>& in, const AttentionOptions& options) {
  return check_request("attention", check_shapes("attention", in.query, in.key, in.value), options);
}

// Makes a schedule of panels of whole vectors, even for few rows.
engine::Schedule<float> schedule_of(const kernels::KernelTable& table,
                                    const Request<float>& request) {
  return engine::in_whole_vectors(
      engine::make_schedule(table, request, Pass::kForward, num_threads()));
}

template <class T>
void forward(const BasicInputViews<T>& in, const AttentionBuffers<T>& buffers,
             const Request<float>& request, const engine::Schedule<float>& schedule,
             const TensorView<float>& lse_low = {}) {
  ForwardCall<float> call{call_of(request, in.query, in.key, in.value), rows_of(buffers.out),
                          buffers.lse, lse_low};
  call.kept = data_or_null(buffers.kept);
  const kernels::KernelTable* const numbers = schedule.table->in_numbers;
  FusedPass<float>(numbers == nullptr ? *schedule.table : *numbers, schedule, Pass::kForward)
      .forward({&call, 1});
}

AttentionOutput<float> output_for(const InputViews& in) {
  const Shape rows{in.query.extent(0), in.query.extent(1), in.query.extent(2)};
  return {Tensor<float>({rows[0], rows[1], rows[2], in.value.extent(3)}), Tensor<float>(rows),
          Tensor<float>(rows)};
}

}  // namespace

Inputs::Inputs(const Sizes& sizes, float magnitude)
    : query(normal<float>({sizes.batch, sizes.num_heads, sizes.q_len, sizes.head_dim}, 1)),
      key(normal<float>({sizes.batch, sizes.num_kv_heads, sizes.kv_len, sizes.head_dim}, 2)),
      value(normal<float>({sizes.batch, sizes.num_kv_heads, sizes.kv_len, sizes.value_dim}, 3)) {
  for (float& element : query.elements()) element *= magnitude;
}

template <class T>
void run_into(const kernels::KernelTable& table, const BasicInputViews<T>& in,
              const AttentionOptions& options, const AttentionBuffers<T>& buffers) {
  const auto request = request_of(in, options);
  forward(in, buffers, request, schedule_of(table, request));
}

template void run_into(const kernels::KernelTable&, const BasicInputViews<float>&,
                       const AttentionOptions&, const AttentionBuffers<float>&);
template void run_into(const kernels::KernelTable&, const BasicInputViews<Float16>&,
                       const AttentionOptions&, const AttentionBuffers<Float16>&);
template void run_into(const kernels::KernelTable&, const BasicInputViews<BFloat16>&,
                       const AttentionOptions&, const AttentionBuffers<BFloat16>&);

AttentionOutput<float> run(const kernels::KernelTable& table, const InputViews& in,
                           const AttentionOptions& options) {
  auto result = output_for(in);
  const auto request = request_of(in, options);
  forward<float>(in, {result.out, result.lse}, request, schedule_of(table, request),
                 result.lse_low);
  return result;
}

AttentionOutput<float> run_for_backward(const kernels::KernelTable& table, const InputViews& in,
                                        const AttentionOptions& options) {
  auto result = output_for(in);
  const auto request = request_of(in, options);
  const auto schedule = schedule_of(table, request);
  result.kept = Tensor<float>({engine::kept_size(request, schedule)});
  forward<float>(in, {.out = result.out, .lse = result.lse, .kept = result.kept}, request, schedule,
                 result.lse_low);
  return result;
}

AttentionOutput<float> run_on_threads(int threads, const kernels::KernelTable& table,
                                      const InputViews& in, const AttentionOptions& options) {
  auto result = output_for(in);
  const auto request = request_of(in, options);
  auto schedule = schedule_of(table, request);
  schedule.workers = threads;
  schedule.panels_per_block = 1;
  const bool divides_keys = threads > 1 && request.shape.kv_len > kernels::kChunkKeys;
  schedule.key_chunks =
      divides_keys ? (request.shape.kv_len - 1) / kernels::kChunkKeys + 1 : std::int64_t{1};
  set_num_threads(threads);
  forward<float>(in, {result.out, result.lse}, request, schedule, result.lse_low);
  set_num_threads(0);
  return result;
}

Expected expected_of(const InputViews& in, const AttentionOptions& options) {
  const ExactOptions exact_options(options);
  auto plain = reference::attention(in.query, in.key, in.value, options);
  auto exact =
      reference::attention(exactly(in.query), exactly(in.key), exactly(in.value), *exact_options);
  return {{std::move(plain.out), std::move(plain.lse)},
          {std::move(exact.out), std::move(exact.lse)}};
}

std::string inaccuracy(const AttentionOutput<float>& found, const Expected& expected,
                       double score_roundings) {
  const auto& [plain, exact] = expected;
  const double out_roundings = 2 + score_roundings * largest_magnitude(exact.lse);
  return inaccuracy("out", found.out, plain.out, exact.out, out_roundings) +
         inaccuracy("lse", found.lse, plain.lse, exact.lse, 2 + score_roundings);
}

void expect_accurate(const kernels::KernelTable& table, const InputViews& in,
                     const AttentionOptions& options, const std::string& what) {
  EXPECT_EQ(inaccuracy(run(table, in, options), expected_of(in, options)), "") << what;
}

}  // namespace heed::testing_support
