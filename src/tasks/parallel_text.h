// Parallel text that is already in memory.
#pragma once

#include <cstdint>
#include <string>

#include "heed/tasks/corpus.h"

namespace heed { inline namespace v0 { namespace tasks {

struct NamedText {
  std::string name;  // for errors
  std::string text;
};

// Returns the corpus that read_parallel_text makes of files with these names and contents.
Corpus parallel_corpus(NamedText source, NamedText target, std::uint64_t seed, Units units);

}}}  // namespace heed::v0::tasks
