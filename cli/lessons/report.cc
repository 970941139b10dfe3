#include "lessons/report.h"

#include <fmt/format.h>

#include "heed/viz/terminal.h"

namespace heed::cli {

namespace {

// Nested lists of numbers, as deep as the tensor's rank.
template <class Real>
nlohmann::json to_json(TensorView<const Real> view) {
  if (view.rank() == 0) return *view.data();
  auto list = nlohmann::json::array();
  for (std::int64_t i = 0; i < view.extent(0); ++i) list.push_back(to_json(view.select(0, i)));
  return list;
}

std::string indented(const std::string& block) {
  std::string result;
  std::size_t begin = 0;
  while (begin < block.size()) {
    const std::size_t end = std::min(block.find('\n', begin), block.size() - 1);
    result += "  " + block.substr(begin, end - begin + 1);
    begin = end + 1;
  }
  return result;
}

}  // namespace

void Report::step(std::string_view title) { text_ += fmt::format("\n{}. {}\n\n", ++steps_, title); }

void Report::show(const std::string& name, std::string_view title, FloatView values, int decimals,
                  const std::vector<std::string>& row_labels) {
  say("{}", title);
  text_ += indented(render_matrix(values, {.decimals = decimals, .row_labels = row_labels}));
  record(name, values);
}

void Report::show(const std::string& name, std::string_view title, DoubleView values, int decimals,
                  const std::vector<std::string>& row_labels) {
  say("{}", title);
  text_ += indented(render_matrix(values, {.decimals = decimals, .row_labels = row_labels}));
  record(name, values);
}

void Report::record(const std::string& name, FloatView values) { values_[name] = to_json(values); }
void Report::record(const std::string& name, DoubleView values) { values_[name] = to_json(values); }

}  // namespace heed::cli
