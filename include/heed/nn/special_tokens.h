/// The tokens that every vocabulary begins with, and their ids.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "heed/core/config.h"

namespace heed { inline namespace v0 {

inline constexpr std::int64_t kPadId = 0;      ///< fills a batch up; no loss is taken of it
inline constexpr std::int64_t kBosId = 1;      ///< begins a target
inline constexpr std::int64_t kEosId = 2;      ///< ends a target
inline constexpr std::int64_t kUnknownId = 3;  ///< stands for what is not in the vocabulary

inline constexpr std::array<std::string_view, 4> kSpecialTokens{"<pad>", "<bos>", "<eos>", "<unk>"};

}}  // namespace heed::v0
