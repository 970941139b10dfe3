#include "tasks/parallel_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "io/byte_source.h"
#include "io/unicode.h"
#include "tasks/split.h"

namespace heed { inline namespace v0 { namespace tasks {

namespace {

constexpr std::size_t kMaxLine = 10'000;
constexpr std::int64_t kMaxFile = std::int64_t{4} << 30;

// A text and its lines. The lines are views of the text, so it is neither copied nor moved.
struct Lines {
  explicit Lines(NamedText named) : name(std::move(named.name)), text(std::move(named.text)) {}
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  std::string name;
  std::string text;
  std::vector<std::string_view> lines;

  [[noreturn]] void fail(std::size_t line, std::string_view problem, std::size_t column = 0) const {
    const std::int64_t byte = line < lines.size() ? lines[line].data() - text.data()
                                                  : static_cast<std::int64_t>(text.size());
    throw FormatError(name, byte + static_cast<std::int64_t>(column),
                      fmt::format("line {} {}", line + 1, problem));
  }
};

void split_lines(Lines& file) {
  std::string_view rest = file.text;
  if (rest.substr(0, 3) == "\xEF\xBB\xBF") rest.remove_prefix(3);
  while (!rest.empty()) {
    const std::size_t size = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, size);
    rest.remove_prefix(std::min(size + 1, rest.size()));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    file.lines.push_back(line);
  }
}

bool is_control(char c) {
  constexpr char kDelete = 0x7F;
  return (static_cast<unsigned char>(c) < ' ' && c != '\t') || c == kDelete;
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t") == std::string_view::npos;
}

void check_lines(const Lines& file) {
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    const std::string_view line = file.lines[i];
    if (line.size() > kMaxLine) {
      file.fail(i, fmt::format("has {} bytes, expected at most {}", line.size(), kMaxLine));
    }
    if (const auto invalid = unicode::find_invalid(line)) {
      file.fail(i, "is not valid UTF-8", *invalid);
    }
    const auto control = std::find_if(line.begin(), line.end(), is_control);
    if (control != line.end()) {
      file.fail(i, "has a control character: this is no text",
                static_cast<std::size_t>(control - line.begin()));
    }
  }
}

NamedText read_text(const std::filesystem::path& path) {
  io::FileSource source(path);
  NamedText file{path.string(), {}};
  if (source.size() > kMaxFile) {
    throw FormatError(
        file.name, 0,
        fmt::format("the file has {} bytes, expected at most {}", source.size(), kMaxFile));
  }
  file.text.resize(static_cast<std::size_t>(source.size()));
  source.read(0, std::as_writable_bytes(std::span<char>(file.text)));
  return file;
}

std::vector<Example> paired(const Lines& source, const Lines& target) {
  if (source.lines.size() != target.lines.size()) {
    const bool source_is_shorter = source.lines.size() < target.lines.size();
    const Lines& shorter = source_is_shorter ? source : target;
    const Lines& longer = source_is_shorter ? target : source;
    shorter.fail(shorter.lines.size(),
                 fmt::format("is missing: the file has {} lines, but '{}' has {}",
                             shorter.lines.size(), longer.name, longer.lines.size()));
  }
  std::vector<Example> examples;
  std::unordered_set<std::string> seen;
  for (std::size_t i = 0; i < source.lines.size(); ++i) {
    const bool has_source = !is_blank(source.lines[i]);
    const bool has_target = !is_blank(target.lines[i]);
    if (!has_source && !has_target) continue;
    if (has_source != has_target) {
      const Lines& empty = has_source ? target : source;
      empty.fail(i, fmt::format("is empty, but not in '{}'", (has_source ? source : target).name));
    }
    Example example{std::string(source.lines[i]), std::string(target.lines[i])};
    if (seen.insert(example.source + '\n' + example.target).second) {
      examples.push_back(std::move(example));
    }
  }
  return examples;
}

}  // namespace

Corpus parallel_corpus(NamedText source, NamedText target, std::uint64_t seed, Units units) {
  Lines sources(std::move(source));
  Lines targets(std::move(target));
  for (Lines* file : {&sources, &targets}) {
    split_lines(*file);
    check_lines(*file);
  }
  std::vector<Example> examples = paired(sources, targets);
  const auto total = static_cast<std::int64_t>(examples.size());
  if (total < 3) {
    throw FormatError(
        sources.name, 0,
        fmt::format("the files have {} different pairs of lines, expected at least 3", total));
  }
  Draws(seed).shuffle(examples);
  const std::int64_t held_out = std::max<std::int64_t>(total / 10, 1);
  Corpus corpus = corpus_of(examples, {total - 2 * held_out, held_out, held_out},
                            [](const Example& example) { return example; });
  corpus.source_units = corpus.target_units = units;
  return corpus;
}

Corpus read_parallel_text(const std::filesystem::path& source, const std::filesystem::path& target,
                          std::uint64_t seed, Units units) {
  NamedText source_file = read_text(source);
  return parallel_corpus(std::move(source_file), read_text(target), seed, units);
}

}}}  // namespace heed::v0::tasks
