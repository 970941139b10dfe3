/// Pairs of texts for training: generated, or read from files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "heed/core/config.h"
#include "heed/tasks/number_words.h"
#include "heed/tasks/vocabulary.h"

namespace heed { inline namespace v0 { namespace tasks {

/// A source text and its target.
struct Example {
  std::string source;
  std::string target;
  friend bool operator==(const Example&, const Example&) = default;
};

/// The number of examples of each part.
struct SplitSizes {
  std::int64_t train = 10000;
  std::int64_t validation = 1000;
  std::int64_t test = 1000;
};

/// Examples for training, for the choice of a model (validation) and for its final score (test). No
/// two examples share the number, date or sequence of symbols that they were made from.
struct Corpus {
  std::vector<Example> train;
  std::vector<Example> validation;
  std::vector<Example> test;
  Units source_units = Units::kWords;
  Units target_units = Units::kWords;
};

/// The options of a generated corpus; the same options give the same corpus on every machine.
struct DrawOptions {
  SplitSizes sizes = {};
  std::uint64_t seed = 0;
};

/// Sequences of symbols.
struct SequenceOptions {
  std::int64_t num_symbols = 26;  ///< "a" to "z"
  std::int64_t min_length = 1;
  std::int64_t max_length = 30;
};

/// Pairs of a sequence of symbols and the same sequence. All lengths are equally frequent, as far
/// as there are enough different sequences.
/// @throws InvalidArgument when an option is out of range, or there are not enough different
/// examples. The functions below throw it too.
HEED_API Corpus copy_corpus(const SequenceOptions& sequences = {}, const DrawOptions& draw = {});
/// Pairs of a sequence of symbols and the reversed sequence.
HEED_API Corpus reverse_corpus(const SequenceOptions& sequences = {}, const DrawOptions& draw = {});

/// number_words() of the numbers 0 to kMaxNumber in two languages. All numbers of digits are
/// equally frequent, as far as there are enough numbers. German, which writes numbers as one word,
/// is split into characters.
HEED_API Corpus number_words_corpus(Language from, Language to, const DrawOptions& draw = {});

/// Dates of the years 1900 to 2099, in English in one of ten formats ("3rd of March 2021",
/// "Wed 3 Mar 2021", "3.3.2021", where the day comes first, …), a quarter of them in lower case,
/// and in ISO 8601: "2021-03-03". Both are split into characters.
HEED_API Corpus dates_corpus(const DrawOptions& draw = {});

/// Two files with the same number of lines, whose lines with the same number are pairs, shuffled
/// and divided: validation and test take a tenth each, at least one pair. Of equal pairs only the
/// first is kept.
///
/// Lines end with LF or CR LF and are valid UTF-8 without control characters other than tabs; a
/// byte order mark and pairs of two empty lines are skipped.
/// @throws FormatError with the file and the line when a line violates this, is longer than 10 000
/// bytes, or is empty and its partner is not; when the numbers of lines differ; when there are
/// fewer than three different pairs.
/// @throws IoError when a file cannot be read.
HEED_API Corpus read_parallel_text(const std::filesystem::path& source,
                                   const std::filesystem::path& target, std::uint64_t seed = 0,
                                   Units units = Units::kWords);

}}}  // namespace heed::v0::tasks
