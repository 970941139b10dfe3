/// The BLAS library that computes the matrix products of layers. A library built with
/// HEED_BUILD_NN=OFF has no layers, needs no BLAS and lacks these functions; trained models have
/// products of heed's own.
#pragma once

#include <string>

#include "heed/core/config.h"

namespace heed { inline namespace v0 {

/// Leaves the threads of the BLAS library as they are. Unless this is called before the first
/// matrix product, heed then sets OpenBLAS to one thread for the whole process, because it divides
/// products among its own threads.
HEED_API void keep_blas_threads() noexcept;

/// Which BLAS library is used and how, on one line, e.g. "OpenBLAS 0.3.21 …, one thread a call".
HEED_API std::string blas_description();

}}  // namespace heed::v0
