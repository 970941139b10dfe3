#include "text/score_merges.h"

#include <algorithm>
#include <functional>
#include <string_view>

namespace heed { inline namespace v0 { namespace text {

namespace {

// True for a byte of UTF-8 that does not begin a character.
bool is_inside_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

}  // namespace

std::vector<BytePairs::Merge> merges_of_scores(const TokenTable& tokens,
                                               const std::vector<double>& scores,
                                               const std::vector<bool>& is_made) {
  std::vector<double> falling = scores;
  std::sort(falling.begin(), falling.end(), std::greater<>());
  falling.erase(std::unique(falling.begin(), falling.end()), falling.end());
  std::vector<BytePairs::Merge> merges;
  for (std::int64_t id = 0; id < tokens.size(); ++id) {
    const auto index = static_cast<std::size_t>(id);
    if (!is_made[index]) continue;
    const auto rank =
        std::lower_bound(falling.begin(), falling.end(), scores[index], std::greater<>()) -
        falling.begin();
    const std::string_view token = tokens.token(id);
    for (std::size_t at = 1; at < token.size(); ++at) {
      if (is_inside_character(token[at])) continue;
      const auto first = tokens.find_in_model(token.substr(0, at));
      const auto second = tokens.find_in_model(token.substr(at));
      if (first && second) merges.push_back({*first, *second, id, rank});
    }
  }
  return merges;
}

}}}  // namespace heed::v0::text
