#pragma once

namespace heed::cli {

// Has OpenBLAS take the kernels of this processor's instructions where it does not know the
// processor. OpenBLAS goes by the model, and computes on one newer than itself as on one of 2004
// ("Prescott"); OPENBLAS_CORETYPE says otherwise, and is left as it is. Before the first product,
// and while there is one thread.
void choose_blas_kernels();

}  // namespace heed::cli
