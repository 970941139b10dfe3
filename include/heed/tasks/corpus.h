/// Pairs of texts to learn from: generated, or read from files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "heed/core/config.h"
#include "heed/tasks/number_words.h"
#include "heed/tasks/vocabulary.h"

namespace heed { inline namespace v0 { namespace tasks {

/// A text and what it is to become.
struct Example {
  std::string source;
  std::string target;
  friend bool operator==(const Example&, const Example&) = default;
};

/// How many examples each part has.
struct SplitSizes {
  std::int64_t train = 10000;
  std::int64_t validation = 1000;
  std::int64_t test = 1000;
};

/// Examples to train on, to choose a model by, and to judge it by at the end. No two have what they
/// were made of in common: a number, a day, a sequence of symbols.
struct Corpus {
  std::vector<Example> train;
  std::vector<Example> validation;
  std::vector<Example> test;
  Units source_units = Units::kWords;
  Units target_units = Units::kWords;
};

/// How a corpus is drawn: the same options give the same corpus on every machine.
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

/// A sequence of symbols, and the same. All lengths are equally frequent, as far as there are
/// enough different sequences.
/// @throws InvalidArgument when an option makes no sense, or there are not so many different
/// examples. So do the functions below.
HEED_API Corpus copy_corpus(const SequenceOptions& sequences = {}, const DrawOptions& draw = {});
/// A sequence of symbols, and the same backwards.
HEED_API Corpus reverse_corpus(const SequenceOptions& sequences = {}, const DrawOptions& draw = {});

/// number_words() of the numbers 0 to kMaxNumber in two languages. All numbers of digits are
/// equally frequent, as far as there are enough numbers. German, which writes numbers in one word,
/// is read by characters.
HEED_API Corpus number_words_corpus(Language from, Language to, const DrawOptions& draw = {});

/// Days of the years 1900 to 2099, written in English in one of ten ways ("3rd of March 2021",
/// "Wed 3 Mar 2021", "3.3.2021", where the day comes first, …), a quarter of them in lower case,
/// and in the form of ISO 8601: "2021-03-03". By characters.
HEED_API Corpus dates_corpus(const DrawOptions& draw = {});

/// Two files of as many lines, whose lines with the same number belong together, shuffled and
/// divided: validation and test take a tenth each, at least one pair. Of pairs that are equal
/// the first is kept.
///
/// Lines end with LF or CR LF and are valid UTF-8 without control characters other than tabs; a
/// byte order mark is skipped, and pairs of two empty lines too.
/// @throws FormatError with the file and the line when a line is not like that, longer than
/// 10 000 bytes, or empty beside one that is not; when the numbers of lines differ; when there are
/// fewer than three different pairs.
/// @throws IoError when a file cannot be read.
HEED_API Corpus read_parallel_text(const std::filesystem::path& source,
                                   const std::filesystem::path& target, std::uint64_t seed = 0,
                                   Units units = Units::kWords);

}}}  // namespace heed::v0::tasks
