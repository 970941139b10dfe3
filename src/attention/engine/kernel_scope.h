// Setup of kernels that several panels share.
#pragma once

#include "attention/kernels/kernels.h"

namespace heed { inline namespace v0 { namespace engine {

// During its lifetime this thread runs only kernels of one table, and no user's functions, which
// may use the same registers. Scopes are not nested.
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
