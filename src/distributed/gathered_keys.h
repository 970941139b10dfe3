// All keys and values of one batch entry, for the rare rows that must read them twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "distributed/segment_exchange.h"

namespace heed { inline namespace v0 { namespace distributed {

class GatheredKeys {
 public:
  // All ranks call it.
  template <class Real>
  GatheredKeys(const SharedProblem<Real>& problem, std::int64_t batch)
      : GatheredKeys(problem.ranks, problem.keys, entry(KeyRows{problem.key, problem.value}, batch),
                     TokenBytes::of(problem.request.shape)) {}

  // All keys and values, with a batch stride of 0: every batch entry reads the same ones.
  const KeyRows& rows() const { return rows_; }

 private:
  GatheredKeys(Communicator& ranks, const TokenDivision& division, const KeyRows& own,
               TokenBytes bytes);

  static KeyRows entry(KeyRows rows, std::int64_t batch) {
    rows.key.data += batch * rows.key.batch_stride;
    rows.value.data += batch * rows.value.batch_stride;
    return rows;
  }

  std::unique_ptr<std::byte[]> memory_;
  KeyRows rows_;
};

}}}  // namespace heed::v0::distributed
