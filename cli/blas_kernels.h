#pragma once

namespace heed::cli {

// Makes OpenBLAS use the kernels of this processor's instruction set where it does not know the
// processor. OpenBLAS goes by the model and computes on one newer than itself as on one of 2004
// ("Prescott"). If OPENBLAS_CORETYPE is set, it is left as it is. Call it before the first product
// and while there is one thread.
void choose_blas_kernels();

}  // namespace heed::cli
