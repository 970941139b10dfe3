#include "blas_kernels.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "heed/core/processor.h"

// Weak symbols: only OpenBLAS defines them, and only where it is built for several processors.
extern "C" {
[[gnu::weak]] char* openblas_get_corename(void);
[[gnu::weak]] void gotoblas_dynamic_init(void);
[[gnu::weak]] void gotoblas_dynamic_quit(void);
}

namespace heed::cli {

void choose_blas_kernels() {
  constexpr const char* kVariable = "OPENBLAS_CORETYPE";
  if (openblas_get_corename == nullptr || gotoblas_dynamic_init == nullptr ||
      gotoblas_dynamic_quit == nullptr || std::getenv(kVariable) != nullptr) {
    return;
  }
  if (std::string_view(openblas_get_corename()) != "Prescott") return;
  const auto sets = supported_instruction_sets();
  const auto has = [&](std::string_view set) {
    return std::find(sets.begin(), sets.end(), set) != sets.end();
  };
  if (!has("AVX2")) return;
  ::setenv(kVariable, has("AVX-512") ? "SKYLAKEX" : "HASWELL", 0);
  gotoblas_dynamic_quit();
  gotoblas_dynamic_init();
}

}  // namespace heed::cli
