/// The BLAS library that computes the gradients of matrix products. A library built with
/// HEED_BUILD_NN=OFF has no layers, needs no BLAS and lacks these functions; heed computes the
/// products of forward passes itself.
#pragma once

#include <string>

#include "heed/core/config.h"

namespace heed { inline namespace v0 {

/// Leaves the number of threads of the BLAS library unchanged. Unless this is called before the
/// first matrix product, heed then sets OpenBLAS to one thread for the whole process, because it
/// divides products among its own threads.
HEED_API void keep_blas_threads() noexcept;

/// The BLAS library and its settings, on one line, e.g. "OpenBLAS 0.3.21 …, one thread a call".
HEED_API std::string blas_description();

}}  // namespace heed::v0
