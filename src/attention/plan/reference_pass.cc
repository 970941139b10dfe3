// The backend of the reference: plain loops over numbers of one type.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "attention/plan/prepared.h"
#include "attention/reference/passes.h"
#include "heed/core/data_type.h"

namespace heed { inline namespace v0 {

namespace {

// Calls use(T{}) with the floating-point type T that `type` names.
template <class Use>
void with_type(DataType type, const Use& use) {
  switch (type) {
    case DataType::kFloat32:
      return use(float{});
    case DataType::kFloat64:
      return use(double{});
    case DataType::kFloat16:
      return use(Float16{});
    case DataType::kBFloat16:
      return use(BFloat16{});
  }
}

// Rows of a tensor of any floating-point type, converted to Real: those of the batch entries that
// are computed.
template <class Real>
class Numbers {
 public:
  // From a tensor [batch, heads, length, dim], of which the batch entries `batches` are read.
  Numbers(const Rows& rows, const Shape& shape, RowRange batches)
      : copy_(Tensor<Real>::uninitialized(
            {batches.end - batches.begin, shape[1], shape[2], shape[3]})),
        shape_(shape) {
    Real* to = copy_.data();
    with_type(rows.type, [&](auto number) {
      using T = decltype(number);
      for (std::int64_t b = batches.begin; b < batches.end; ++b)
        for (std::int64_t h = 0; h < shape[1]; ++h)
          for (std::int64_t i = 0; i < shape[2]; ++i) {
            const T* from = reinterpret_cast<const T*>(rows.row(b, h, i));
            for (std::int64_t d = 0; d < shape[3]; ++d) *to++ = static_cast<Real>(from[d]);
          }
    });
  }
  // From numbers [batches, heads, length, dim] that have been read already.
  Numbers(Tensor<Real>&& read, const Shape& shape) : copy_(std::move(read)), shape_(shape) {}
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;

  // The numbers as a tensor of the original shape: a single entry is broadcast, others start with
  // the first of `batches`.
  TensorView<const Real> view() const { return copy_.view().broadcast_to(shape_); }

 private:
  Tensor<Real> copy_;
  Shape shape_;
};

// The keys or values of some batch entries, read tile by tile, as [batches, num_kv_heads, kv_len,
// dim].
enum class Side { kKey, kValue };
template <class Real>
Tensor<Real> read_all(const KeySource<Real>& source, const Request<Real>& request, RowRange batches,
                      Side side) {
  constexpr std::int64_t kTileKeys = kernels::kTileKeys;
  const std::int64_t kv_len = request.shape.kv_len;
  Tensor<Real> key({kTileKeys, request.head_dim()});
  Tensor<Real> value({kTileKeys, request.value_dim()});
  const std::int64_t dim = side == Side::kKey ? request.head_dim() : request.value_dim();
  auto all = Tensor<Real>::uninitialized(
      {batches.end - batches.begin, request.num_kv_heads(), kv_len, dim});
  Real* to = all.data();
  for (std::int64_t b = batches.begin; b < batches.end; ++b)
    for (std::int64_t h = 0; h < request.num_kv_heads(); ++h)
      for (std::int64_t first = 0; first < kv_len; first += kTileKeys) {
        const RowRange keys{first, std::min(first + kTileKeys, kv_len)};
        const auto tile = source.tile(b, h, keys, {key.data(), value.data()});
        const Real* from = side == Side::kKey ? tile.key : tile.value;
        const std::int64_t stride = side == Side::kKey ? tile.key_stride : tile.value_stride;
        for (std::int32_t j = 0; j < tile.num_keys; ++j) {
          to = std::copy_n(from + j * stride, dim, to);
        }
      }
  return all;
}

// The tensors of a call. A call without values has empty ones.
template <class Real>
class Operands {
 public:
  explicit Operands(const Call<Real>& call)
      : request_(*call.request),
        query_(call.query,
               shape(request_.shape.num_heads, request_.shape.q_len, request_.head_dim()),
               call.batches),
        key_(numbers(call, Side::kKey)),
        value_(numbers(call, Side::kValue)) {}

  Problem<Real> problem() const { return {{request_}, query_.view(), key_.view(), value_.view()}; }

 private:
  Numbers<Real> numbers(const Call<Real>& call, Side side) const {
    const bool is_key = side == Side::kKey;
    const Shape all = shape(request_.num_kv_heads(), request_.shape.kv_len,
                            is_key ? request_.head_dim() : request_.value_dim());
    if (call.keys == nullptr) return {is_key ? call.key : call.value, all, call.batches};
    return {read_all(*call.keys, request_, call.batches, side), all};
  }
  Shape shape(std::int64_t heads, std::int64_t length, std::int64_t dim) const {
    return {request_.shape.batch, heads, length, dim};
  }

  const Request<Real>& request_;
  Numbers<Real> query_;
  Numbers<Real> key_;
  Numbers<Real> value_;
};

// Writes [batches, heads, length, dim] to the rows of these batch entries.
template <class Real>
void write(const Tensor<Real>& from, RowRange batches, const MutableRows& to) {
  const Real* number = from.data();
  with_type(to.type, [&](auto kind) {
    using T = decltype(kind);
    for (std::int64_t b = batches.begin; b < batches.end; ++b)
      for (std::int64_t h = 0; h < from.extent(1); ++h)
        for (std::int64_t i = 0; i < from.extent(2); ++i) {
          T* row = reinterpret_cast<T*>(to.row(b, h, i));
          for (std::int64_t d = 0; d < from.extent(3); ++d) row[d] = static_cast<T>(*number++);
        }
  });
}

// Writes the rounding errors of these numbers in the type of the rows; nothing if `to` has no data.
template <class Real>
void write_rest(const Tensor<Real>& of, RowRange batches, const MutableRows& to) {
  if (to.data == nullptr) return;
  Tensor<Real> rest = of;
  with_type(to.type, [&](auto kind) {
    for (Real& number : rest.elements()) {
      const Real lacks = number - static_cast<Real>(static_cast<decltype(kind)>(number));
      number = std::isfinite(lacks) ? lacks : Real{0};
    }
  });
  write(rest, batches, to);
}

template <class Real>
class ReferencePass final : public Prepared<Real> {
 public:
  std::string target() const override { return "reference"; }
  std::string describe(const Request<Real>&) const override {
    return "kernel      reference, plain loops\n";
  }
  std::size_t bytes(const Request<Real>&) const override { return 0; }

  void forward(std::span<const ForwardCall<Real>> calls, std::span<std::byte>) const override {
    for (const ForwardCall<Real>& call : calls) {
      const Operands<Real> operands(call);
      const auto result = reference::forward(operands.problem(), call.batches);
      write(result.out, call.batches, call.out);
      write_rest(result.out, call.batches, call.out_low);
      if (!call.lse_low.empty()) {
        // lse_low is 0: the backward pass of the reference computes weights anew and does not read
        // lse.
        const auto low = call.lse_low.slice(0, call.batches.begin, call.batches.end);
        for_each_element(low, [](Real& element) { element = 0; });
      }
      if (call.lse.empty()) continue;
      const auto lse = call.lse.slice(0, call.batches.begin, call.batches.end);
      const Real* number = result.lse.data();
      for_each_element(lse, [&](Real& element) { element = *number++; });
    }
  }

  void backward(std::span<const BackwardCall<Real>> calls, std::span<std::byte>) const override {
    for (const BackwardCall<Real>& call : calls) {
      const Request<Real>& request = *call.request;
      const Operands<Real> operands(call);
      const Numbers<Real> grad_out(
          call.grad_out,
          {request.shape.batch, request.shape.num_heads, request.shape.q_len, request.value_dim()},
          call.batches);
      const auto found = reference::backward(operands.problem(), grad_out.view(), call.batches);
      write(found.query, call.batches, call.gradients.query);
      write(found.key, call.batches, call.gradients.key);
      write(found.value, call.batches, call.gradients.value);
      write_terms(call, found);
    }
  }

  Tensor<Real> weights(const Call<Real>& call, std::span<const AttentionRow> rows) const override {
    const Operands<Real> operands(call);
    return reference::weights_of_rows(operands.problem(), rows);
  }

  BasicAttentionStatistics<Real> statistics(const Call<Real>& call,
                                            std::int64_t top_k) const override {
    const Operands<Real> operands(call);
    return reference::statistics_of(operands.problem(), top_k);
  }

  AttentionDiagnostics diagnose(const Call<Real>& call,
                                const DiagnosticsOptions& lengths) const override {
    const Operands<Real> operands(call);
    return reference::diagnose(operands.problem(), lengths);
  }

 private:
  static void copy(const Tensor<Real>& from, Real* to) {
    std::copy_n(from.data(), from.num_elements(), to);
  }

  static void write_terms(const BackwardCall<Real>& call, const AttentionGradients<Real>& found) {
    const Request<Real>& request = *call.request;
    if (request.sinks) copy(found.sinks, call.gradients.sinks);
    std::size_t i = 0;
    for (const auto& term : request.terms) {
      Real* const per_head = call.gradients.per_head[i++];
      if (per_head != nullptr) copy(found.*term->gradient(), per_head);
      if (term->gradient() != nullptr && per_head == nullptr && call.gradients.cells) {
        write_cells(call, found.*term->gradient());
      }
    }
  }

  // Writes the gradient of cells; the target is broadcast in the same dimensions.
  static void write_cells(const BackwardCall<Real>& call, const Tensor<Real>& found) {
    const TensorView<Real>& target = *call.gradients.cells;
    const auto from = found.view().broadcast_to(target.shape());
    for (std::int64_t b = call.batches.begin; b < call.batches.end; ++b)
      for (std::int64_t h = 0; h < target.extent(1); ++h)
        for (std::int64_t q = 0; q < target.extent(2); ++q)
          for (std::int64_t k = 0; k < target.extent(3); ++k) target(b, h, q, k) = from(b, h, q, k);
  }
};

}  // namespace

template <class Real>
Preparation<Real> prepare_reference(const Request<Real>&, Pass) {
  return {std::make_unique<ReferencePass<Real>>(), ""};
}

template Preparation<float> prepare_reference(const Request<float>&, Pass);
template Preparation<double> prepare_reference(const Request<double>&, Pass);

}}  // namespace heed::v0
