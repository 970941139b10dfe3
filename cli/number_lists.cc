#include "number_lists.h"

namespace heed::cli {

nlohmann::json number_lists(FloatView view) {
  if (view.rank() == 0) return *view.data();
  auto list = nlohmann::json::array();
  for (std::int64_t i = 0; i < view.extent(0); ++i) list.push_back(number_lists(view.select(0, i)));
  return list;
}

}  // namespace heed::cli
