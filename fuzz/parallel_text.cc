// Two texts from arbitrary bytes, divided at the first 0xFF: they are refused, or the examples
// differ, have one line each that is not blank, and can be encoded with their vocabulary.
#include "tasks/parallel_text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "heed/core/error.h"
#include "heed/tasks/vocabulary.h"

namespace {

namespace tasks = heed::tasks;

bool is_line(const std::string& text) {
  return text.find_first_not_of(" \t") != std::string::npos &&
         text.find_first_of("\r\n") == std::string::npos;
}

void check(const tasks::Corpus& corpus) {
  std::set<std::pair<std::string, std::string>> seen;
  std::vector<std::string> sources;
  for (const auto* part : {&corpus.train, &corpus.validation, &corpus.test}) {
    if (part->empty()) std::abort();
    for (const auto& [source, target] : *part) {
      if (!is_line(source) || !is_line(target) || !seen.emplace(source, target).second) {
        std::abort();
      }
      sources.push_back(source);
    }
  }
  const tasks::Vocabulary vocabulary(sources, corpus.source_units);
  for (const auto& source : sources) vocabulary.tokens(vocabulary.ids(source));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::uint8_t kDivider = 0xFF;  // does not occur in UTF-8
  const auto* const end = data + size;
  const auto* const divider = std::find(data, end, kDivider);
  const auto* const second = divider == end ? end : divider + 1;
  try {
    check(tasks::parallel_corpus({"source", std::string(data, divider)},
                                 {"target", std::string(second, end)}, 1,
                                 size % 2 == 0 ? tasks::Units::kWords : tasks::Units::kCharacters));
  } catch (const heed::FormatError&) {
  }
  return 0;
}
