#include "heads/text_pieces.h"

#include <algorithm>

namespace heed::cli {

namespace {

constexpr std::string_view kWhiteSpace = " \t\r\n";

std::string_view without_margins(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(kWhiteSpace), text.size());
  const std::size_t end = text.find_last_not_of(kWhiteSpace);
  return end == std::string_view::npos ? std::string_view() : text.substr(begin, end + 1 - begin);
}

// Removes the first paragraph from `text` and returns it. Each character is read once.
std::string_view take_paragraph(std::string_view& text) {
  std::size_t end = text.size();
  std::size_t margin = 0;
  for (std::size_t lf = text.find('\n'); lf != std::string_view::npos;
       lf = text.find('\n', lf + 1)) {
    const bool is_crlf = lf > 0 && text[lf - 1] == '\r' && text.substr(lf).starts_with("\n\r\n");
    if (!is_crlf && !text.substr(lf).starts_with("\n\n")) continue;
    end = is_crlf ? lf - 1 : lf;
    margin = is_crlf ? 4 : 2;
    break;
  }
  const std::string_view paragraph = text.substr(0, end);
  text.remove_prefix(end + margin);
  return without_margins(paragraph);
}

}  // namespace

std::vector<std::string> text_pieces(std::string_view text, std::int64_t bytes,
                                     std::int64_t count) {
  std::vector<std::string> pieces;
  bool is_full = true;  // of the last piece
  while (!text.empty()) {
    const std::string_view paragraph = take_paragraph(text);
    if (paragraph.empty()) continue;
    if (is_full && static_cast<std::int64_t>(pieces.size()) == count) break;
    if (is_full) {
      pieces.emplace_back(paragraph);
    } else {
      pieces.back() += "\n\n";
      pieces.back() += paragraph;
    }
    is_full = static_cast<std::int64_t>(pieces.back().size()) >= bytes;
  }
  return pieces;
}

}  // namespace heed::cli
