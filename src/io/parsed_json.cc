#include "io/parsed_json.h"

namespace heed { inline namespace v0 { namespace io {

nlohmann::json parse_json(std::string_view text) {
  constexpr bool kThrows = false;
  bool is_too_deep = false;
  const auto keep = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    is_too_deep = is_too_deep || depth > kMaxJsonDepth;
    return !is_too_deep;
  };
  nlohmann::json json = nlohmann::json::parse(text, keep, kThrows);
  if (is_too_deep) return nlohmann::json::value_t::discarded;
  return json;
}

}}}  // namespace heed::v0::io
