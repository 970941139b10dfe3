// What kernels set up once for several panels.
#pragma once

#include "attention/kernels/kernels.h"

namespace heed { inline namespace v0 { namespace engine {

// While it lives, this thread runs nothing but kernels of a table: no function of a user's, which
// may use the same registers. Not one within another.
template <class Real>
class KernelScope {
 public:
  KernelScope(const kernels::BasicKernelTable<Real>& table, bool wanted)
      : table_(wanted && table.begin != nullptr ? &table : nullptr) {
    if (table_ != nullptr) table_->begin();
  }
  ~KernelScope() {
    if (table_ != nullptr) table_->end();
  }
  KernelScope(const KernelScope&) = delete;
  KernelScope& operator=(const KernelScope&) = delete;

 private:
  const kernels::BasicKernelTable<Real>* table_;
};

}}}  // namespace heed::v0::engine
