/// The first tokens of every vocabulary, and their ids.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "heed/core/config.h"

namespace heed { inline namespace v0 {

inline constexpr std::int64_t kPadId = 0;      ///< pads a batch; it has no loss
inline constexpr std::int64_t kBosId = 1;      ///< begins a target
inline constexpr std::int64_t kEosId = 2;      ///< ends a target
inline constexpr std::int64_t kUnknownId = 3;  ///< replaces tokens that are not in the vocabulary

inline constexpr std::array<std::string_view, 4> kSpecialTokens{"<pad>", "<bos>", "<eos>", "<unk>"};

}}  // namespace heed::v0
