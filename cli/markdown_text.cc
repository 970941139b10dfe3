#include "markdown_text.h"

#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "heed/viz/layout.h"

namespace heed::cli {

namespace {

using TableRow = std::vector<std::string>;

constexpr int kColumnGap = 2;

// Returns the cells of a line "| a | b |".
TableRow cells_of(const std::string& line) {
  TableRow cells;
  std::size_t begin = 1;
  for (std::size_t end = 0; (end = line.find('|', begin)) != line.npos; begin = end + 1) {
    std::string cell = line.substr(begin, end - begin);
    cell.erase(0, std::min(cell.find_first_not_of(' '), cell.size()));
    cell.erase(cell.find_last_not_of(' ') + 1);
    cells.push_back(std::move(cell));
  }
  return cells;
}

bool is_rule(const std::string& line) { return line.find_first_not_of("|-: ") == line.npos; }

std::string padding(int columns) {
  return std::string(static_cast<std::size_t>(std::max(columns, 0)), ' ');
}

std::string aligned(const std::vector<TableRow>& rows) {
  std::vector<int> widths;
  for (const TableRow& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], terminal_columns(row[i]));
    }
  }
  std::string text;
  for (const TableRow& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string space = padding(widths[i] - terminal_columns(row[i]));
      line += i == 0 ? row[i] + space : padding(kColumnGap) + space + row[i];
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  return text;
}

std::string underlined(std::string_view title) {
  title.remove_prefix(std::min(title.find_first_not_of("# "), title.size()));
  return std::string(title) + '\n' +
         std::string(static_cast<std::size_t>(terminal_columns(title)), '-') + '\n';
}

}  // namespace

std::string without_markup(std::string_view markdown) {
  std::istringstream lines{std::string(markdown)};
  std::string text;
  std::vector<TableRow> table;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('|')) {
      if (!is_rule(line)) table.push_back(cells_of(line));
      continue;
    }
    text += aligned(table) + (line.starts_with('#') ? underlined(line) : line + '\n');
    table.clear();
  }
  return text + aligned(table);
}

std::string for_stdout(std::string markdown) {
  return ::isatty(STDOUT_FILENO) == 0 ? std::move(markdown) : without_markup(markdown);
}

}  // namespace heed::cli
