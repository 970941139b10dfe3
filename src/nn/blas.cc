#include "nn/blas.h"

#include <cblas.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <new>
#include <string>

#include "core/float_environment.h"
#include "core/places.h"
#include "core/platform.h"
#include "heed/core/parallel.h"
#include "heed/nn/blas.h"

// Weak: only OpenBLAS has these functions; with any other BLAS they are null.
extern "C" {
[[gnu::weak]] void openblas_set_num_threads(int count);
[[gnu::weak]] int openblas_get_parallel(void);
[[gnu::weak]] char* openblas_get_config(void);
}

namespace heed { inline namespace v0 {
namespace {

/// The division of `out`: along its longer dimension, into about kBlocks BLAS calls of kMinBlock to
/// kMaxBlock rows or columns. Each call packs the whole factor that the blocks share. With OpenBLAS
/// 0.3.21, one thread and k = n = 256, calls of 32, 64 and 128 rows reach 79, 88 and 91 % of the
/// speed of one call for all rows.
constexpr std::int64_t kBlocks = 8;
constexpr std::int64_t kMinBlock = 128;
constexpr std::int64_t kMaxBlock = 512;
/// A product of fewer multiply-adds is one call; it takes some 0.1 ms.
constexpr double kMinWork = 1 << 24;
/// OpenBLAS computes this many rows or columns at once, or a divisor of it.
constexpr std::int64_t kBlockMultiple = 16;

constexpr std::int64_t kMaxExtent = std::numeric_limits<int>::max();

std::atomic<bool> keeps_blas_threads = false;

/// OpenBLAS built without threads shares its work memory among callers without a lock, and two
/// threads that multiply at once get wrong products (seen with 0.3.21).
bool is_serial_openblas() {
  return openblas_get_parallel != nullptr && openblas_get_parallel() == 0;
}

/// The address space that OpenBLAS takes for each product that is computed at the same time, on
/// x86-64 and ARM (seen with 0.3.21), and the space that must be left for the program.
constexpr std::size_t kBufferBytes = std::size_t{128} << 20;
constexpr std::size_t kSpareBytes = std::size_t{4} << 20;

bool has_room_for_buffers(int count) {
  return platform::has_room(static_cast<std::size_t>(count) * kBufferBytes + kSpareBytes);
}

class NoRoomForProducts : public std::bad_alloc {
 public:
  const char* what() const noexcept override {
    return "not enough memory for matrix products: OpenBLAS takes 128 MiB of addresses for each "
           "thread that multiplies; raise the limit (`ulimit -v`)";
  }
};

/// The rules for calls into the library.
class Library {
 public:
  static Library& instance() {
    static Library library;
    return library;
  }

  /// Held during a call. Without enough memory OpenBLAS retries its allocation forever, so no more
  /// threads may call it than find memory.
  /// @throws NoRoomForProducts if there is too little for one.
  class Call {
   public:
    Call() : library_(instance()) {
      if (library_.needs_lock_) lock_ = std::unique_lock(library_.mutex_);
      if (!library_.is_openblas_) return;
      place_ = library_.places_.enter();
      if (place_ == Places::Place::kNone) throw NoRoomForProducts();
    }
    ~Call() {
      if (library_.is_openblas_) library_.places_.leave(place_);
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    Library& library_;
    std::unique_lock<std::mutex> lock_;
    Places::Place place_ = Places::Place::kNone;
  };

 private:
  Library() {
    if (openblas_set_num_threads != nullptr && !keeps_blas_threads) openblas_set_num_threads(1);
    platform::at_fork([] { instance().before_fork(); }, [] { instance().after_fork_in_parent(); },
                      [] { instance().after_fork_in_child(); });
  }

  /// A fork waits for products: OpenBLAS allocates memory under a lock, which no thread of the new
  /// process would release.
  void before_fork() {
    mutex_.lock();
    places_.close();
  }
  void after_fork_in_parent() {
    places_.open_in_parent();
    mutex_.unlock();
  }
  void after_fork_in_child() {
    places_.open_in_child();
    mutex_.unlock();
  }

  const bool is_openblas_ = openblas_get_config != nullptr;
  const bool needs_lock_ = is_serial_openblas();
  std::mutex mutex_;
  Places places_{has_room_for_buffers};
};

/// True if BLAS accepts the matrix as row-major: gaps between rows are allowed, gaps within are
/// not.
template <class T>
bool is_row_major(TensorView<T> matrix) {
  const std::int64_t row = std::max<std::int64_t>(matrix.extent(1), 1);
  return (matrix.stride(1) == 1 || matrix.extent(1) <= 1) &&
         ((matrix.stride(0) >= row && matrix.stride(0) <= kMaxExtent) || matrix.extent(0) <= 1);
}

template <class T>
TensorView<T> transposed(TensorView<T> matrix) {
  return matrix.permute({1, 0});
}

/// A factor in a layout that BLAS accepts: the caller's elements if possible, otherwise a copy.
template <class T>
class Factor {
 public:
  explicit Factor(TensorView<const T> matrix) : view_(matrix) {
    if (is_row_major(matrix) || is_row_major(transposed(matrix))) return;
    copy_ = to_tensor(matrix);
    view_ = copy_.view();
  }
  Factor(const Factor&) = delete;
  Factor& operator=(const Factor&) = delete;

  TensorView<const T> view() const { return view_; }

 private:
  Tensor<T> copy_;
  TensorView<const T> view_;
};

/// One argument of a BLAS call.
template <class T>
struct Argument {
  explicit Argument(TensorView<T> matrix)
      : data(matrix.data()), transpose(is_row_major(matrix) ? CblasNoTrans : CblasTrans) {
    const int outer = transpose == CblasNoTrans ? 0 : 1;
    // The stride of a single row has no meaning, but BLAS checks it.
    const std::int64_t row = std::max<std::int64_t>(matrix.extent(1 - outer), 1);
    leading = static_cast<int>(matrix.extent(outer) <= 1 ? row : matrix.stride(outer));
  }

  T* data;
  CBLAS_TRANSPOSE transpose;
  int leading = 1;
};

template <class T>
void call_blas(TensorView<const T> a, TensorView<const T> b, TensorView<T> out,
               ProductScale<T> scale) {
  const Argument<const T> left(a);
  const Argument<const T> right(b);
  const Argument<T> result(out);
  const auto m = static_cast<int>(out.extent(0));
  const auto n = static_cast<int>(out.extent(1));
  const auto k = static_cast<int>(a.extent(1));
  const Library::Call call;
  if constexpr (std::is_same_v<T, float>) {
    cblas_sgemm(CblasRowMajor, left.transpose, right.transpose, m, n, k, scale.alpha, left.data,
                left.leading, right.data, right.leading, scale.beta, result.data, result.leading);
  } else {
    cblas_dgemm(CblasRowMajor, left.transpose, right.transpose, m, n, k, scale.alpha, left.data,
                left.leading, right.data, right.leading, scale.beta, result.data, result.leading);
  }
}

/// Depends on the dimensions alone, so that the result does not depend on the number of threads.
std::int64_t block_length(const Shape& out, std::int64_t inner) {
  const std::int64_t length = std::max(out[0], out[1]);
  const double work =
      static_cast<double>(out[0]) * static_cast<double>(out[1]) * static_cast<double>(inner);
  if (work < kMinWork) return length;
  const std::int64_t shared = std::clamp((length - 1) / kBlocks + 1, kMinBlock, kMaxBlock);
  return (shared + kBlockMultiple - 1) / kBlockMultiple * kBlockMultiple;
}

/// Writes the product to a row-major `out`.
template <class T>
void multiply_blocks(TensorView<const T> a, TensorView<const T> b, TensorView<T> out,
                     ProductScale<T> scale) {
  const Factor<T> left(a);
  const Factor<T> right(b);
  const bool divides_rows = out.extent(0) >= out.extent(1);
  const std::int64_t length = std::max(out.extent(0), out.extent(1));
  const std::int64_t block = block_length(out.shape(), a.extent(1));
  parallel_for(0, length, block, [&](std::int64_t first, std::int64_t last) {
    if (divides_rows) {
      call_blas(left.view().slice(0, first, last), right.view(), out.slice(0, first, last), scale);
    } else {
      call_blas(left.view(), right.view().slice(1, first, last), out.slice(1, first, last), scale);
    }
  });
}

/// Writes the product to any `out`, through a copy.
template <class T>
void multiply_through_copy(TensorView<const T> a, TensorView<const T> b, TensorView<T> out,
                           ProductScale<T> scale) {
  Tensor<T> product = scale.beta == 0 ? Tensor<T>(out.shape()) : to_tensor(out);
  multiply_blocks(a, b, product.view(), scale);
  const T* next = product.data();
  for_each_element(out, [&next](T& element) { element = *next++; });
}

void check_extents(const char* name, const Shape& shape) {
  if (shape.rank() != 2) {
    throw InvalidArgument(
        fmt::format("matmul: {} has shape {}, rank 2 is expected", name, to_string(shape)));
  }
  if (std::max(shape[0], shape[1]) > kMaxExtent) {
    throw InvalidArgument(fmt::format("matmul: {} has shape {}, extents up to {} are supported",
                                      name, to_string(shape), kMaxExtent));
  }
}

void check_shapes(const Shape& a, const Shape& b, const Shape& out) {
  check_extents("a", a);
  check_extents("b", b);
  check_extents("out", out);
  if (a[1] != b[0]) {
    throw InvalidArgument(fmt::format("matmul: a has {} columns but b has {} rows", a[1], b[0]));
  }
  if (const Shape expected{a[0], b[1]}; out != expected) {
    throw InvalidArgument(fmt::format("matmul: out has shape {}, {} is expected", to_string(out),
                                      to_string(expected)));
  }
}

template <class T>
void multiply(TensorView<const T> a, TensorView<const T> b, TensorView<T> out,
              ProductScale<T> scale) {
  check_shapes(a.shape(), b.shape(), out.shape());
  if (out.empty()) return;
  if (is_row_major(out)) {
    multiply_blocks(a, b, out, scale);
  } else if (is_row_major(transposed(out))) {
    multiply_blocks(transposed(b), transposed(a), transposed(out), scale);
  } else {
    multiply_through_copy(a, b, out, scale);
  }
}

std::string openblas_description() {
  const std::string threads = keeps_blas_threads ? "its own threads" : "one thread a call";
  return fmt::format("{}, {}", openblas_get_config(),
                     is_serial_openblas() ? "built without threads: one call at a time" : threads);
}

}  // namespace

void matmul(TensorView<const float> a, TensorView<const float> b, TensorView<float> out,
            ProductScale<float> scale) {
  const FloatEnvironment environment;
  multiply(a, b, out, scale);
}

void matmul(TensorView<const double> a, TensorView<const double> b, TensorView<double> out,
            ProductScale<double> scale) {
  const FloatEnvironment environment;
  multiply(a, b, out, scale);
}

void keep_blas_threads() noexcept { keeps_blas_threads = true; }

std::string blas_description() {
  return openblas_get_config != nullptr ? openblas_description()
                                        : "not OpenBLAS, threads as it is set";
}

}}  // namespace heed::v0
