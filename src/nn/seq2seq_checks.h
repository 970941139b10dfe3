// Checks that all sequence-to-sequence models share.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <vector>

#include "heed/core/tensor.h"

namespace heed { inline namespace v0 { namespace nn {

// One size of a model, and its name.
struct NamedSize {
  const char* name;
  std::int64_t size;
};

inline void check_sizes(const char* model, const std::vector<NamedSize>& sizes) {
  for (const auto& [name, size] : sizes) {
    if (size > 0) continue;
    throw InvalidArgument(
        fmt::format("{}: {} is {}, expected a positive number", model, name, size));
  }
}

inline void check_even(const char* model, std::int64_t d_model) {
  if (d_model % 2 == 0) return;
  throw InvalidArgument(fmt::format(
      "{}: d_model is {}, expected an even number: half for each direction", model, d_model));
}

// Checks ids [batch, length].
inline void check_ids(const char* function, const char* name, TensorView<const std::int64_t> ids) {
  if (ids.rank() == 2) return;
  throw InvalidArgument(fmt::format("{}: {} has shape {}, expected [batch, length]", function, name,
                                    to_string(ids.shape())));
}

// Checks that there is one length for each source, or none.
inline void check_lengths(const char* function, TensorView<const std::int64_t> src,
                          const std::vector<std::int64_t>& lengths) {
  if (lengths.empty()) return;
  if (static_cast<std::int64_t>(lengths.size()) != src.extent(0)) {
    throw InvalidArgument(fmt::format("{}: {} lengths are given for a batch of {}", function,
                                      lengths.size(), src.extent(0)));
  }
  for (const std::int64_t length : lengths) {
    if (length >= 0 && length <= src.extent(1)) continue;
    throw InvalidArgument(
        fmt::format("{}: a length is {}, expected 0 to {}", function, length, src.extent(1)));
  }
}

// Checks that encoder and decoder have the same batch.
inline void check_batch(const char* function, TensorView<const std::int64_t> tgt,
                        std::int64_t batch) {
  check_ids(function, "tgt", tgt);
  if (tgt.extent(0) == batch) return;
  throw InvalidArgument(
      fmt::format("{}: tgt has {} sequences but {} were encoded", function, tgt.extent(0), batch));
}

}}}  // namespace heed::v0::nn
