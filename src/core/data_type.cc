#include "heed/core/data_type.h"

namespace heed { inline namespace v0 {

std::string_view to_string(DataType type) noexcept {
  switch (type) {
    case DataType::kFloat32:
      return "float32";
    case DataType::kFloat16:
      return "float16";
    case DataType::kBFloat16:
      return "bfloat16";
    case DataType::kFloat64:
      break;
  }
  return "float64";
}

}}  // namespace heed::v0
