#include "heed/tasks/corpus.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>
#include <string>

#include "heed/core/error.h"
#include "support/refusal.h"

namespace heed::tasks { namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::Message;

const DrawOptions kSmall{.sizes = {300, 40, 50}, .seed = 3};

std::vector<Example> all_of(const Corpus& corpus) {
  std::vector<Example> all = corpus.train;
  all.insert(all.end(), corpus.validation.begin(), corpus.validation.end());
  all.insert(all.end(), corpus.test.begin(), corpus.test.end());
  return all;
}

// Checks the sizes, that no target occurs twice, and that only the same seed gives the same corpus.
template <class Make>
void check_corpus(const Make& make) {
  const Corpus corpus = make(kSmall);
  EXPECT_EQ(corpus.train.size(), 300);
  EXPECT_EQ(corpus.validation.size(), 40);
  EXPECT_EQ(corpus.test.size(), 50);
  std::set<std::string> targets;
  for (const auto& example : all_of(corpus)) {
    EXPECT_TRUE(targets.insert(example.target).second) << example.target;
  }
  EXPECT_EQ(make(kSmall).test, corpus.test);
  DrawOptions other = kSmall;
  other.seed = 4;
  EXPECT_NE(make(other).test, corpus.test);
}

TEST(Corpora, AreDrawnOnceAndDivided) {
  check_corpus([](const DrawOptions& draw) { return copy_corpus({}, draw); });
  check_corpus([](const DrawOptions& draw) { return reverse_corpus({}, draw); });
  check_corpus([](const DrawOptions& draw) { return dates_corpus(draw); });
  check_corpus([](const DrawOptions& draw) {
    return number_words_corpus(Language::kEnglish, Language::kFrench, draw);
  });
}

// Random drawing would hardly find the last ones.
TEST(Corpora, CanHaveAllThereAre) {
  const Corpus corpus = dates_corpus({.sizes = {73'000, 40, 9}});
  std::set<std::string> days;
  for (const auto& example : all_of(corpus)) days.insert(example.target);
  EXPECT_EQ(days.size(), 73'049);
  EXPECT_EQ(*days.begin(), "1900-01-01");
  EXPECT_EQ(*days.rbegin(), "2099-12-31");
}

TEST(Corpora, OfSequencesAreCopiedOrReversed) {
  const SequenceOptions options{.num_symbols = 3, .min_length = 2, .max_length = 9};
  for (const auto& [source, target] : all_of(copy_corpus(options, kSmall))) {
    EXPECT_EQ(source, target);
    EXPECT_TRUE(std::regex_match(source, std::regex("[a-c]( [a-c]){1,8}"))) << source;
  }
  for (const auto& [source, target] : all_of(reverse_corpus(options, kSmall))) {
    EXPECT_EQ(source, std::string(target.rbegin(), target.rend()));
  }
}

TEST(Corpora, OfSequencesHaveAllLengths) {
  std::set<std::size_t> lengths;
  for (const auto& example : copy_corpus({.max_length = 10}, kSmall).train) {
    lengths.insert((example.source.size() + 1) / 2);
  }
  EXPECT_EQ(lengths.size(), 10);
}

TEST(Corpora, OfNumbersAreTranslations) {
  const Corpus corpus = number_words_corpus(Language::kGerman, Language::kFrench, kSmall);
  EXPECT_EQ(corpus.source_units, Units::kCharacters);
  EXPECT_EQ(corpus.target_units, Units::kWords);
  std::set<std::pair<std::string, std::string>> pairs;
  for (std::int64_t number = 0; number < 1000; ++number) {
    pairs.emplace(number_words(number, Language::kGerman), number_words(number, Language::kFrench));
  }
  std::int64_t small = 0;
  for (const auto& [source, target] : all_of(corpus)) {
    if (source.find("tausend") != std::string::npos) continue;
    EXPECT_TRUE(pairs.contains({source, target})) << source;
    ++small;
  }
  EXPECT_GT(small, 100);
}

// Reads all forms back by independent rules.
TEST(Corpora, OfDatesMeanTheSameDay) {
  const char* const months[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                "jul", "aug", "sep", "oct", "nov", "dec"};
  for (auto [source, target] : all_of(dates_corpus(kSmall))) {
    std::smatch iso;
    ASSERT_TRUE(std::regex_match(target, iso, std::regex("((?:19|20)\\d\\d)-(\\d\\d)-(\\d\\d)")));
    const std::string year = iso[1];
    const std::string day = std::to_string(std::stoi(iso[3]));
    const std::string month_number = std::to_string(std::stoi(iso[2]));
    for (char& c : source) c = static_cast<char>(std::tolower(c));
    EXPECT_THAT(source, HasSubstr(year));
    if (source == fmt::format("{}.{}.{}", day, month_number, year) ||
        source == fmt::format("{}/{}/{}", year, month_number, day)) {
      continue;
    }
    EXPECT_THAT(source, HasSubstr(months[std::stoi(iso[2]) - 1]));
    EXPECT_TRUE(std::regex_search(source, std::regex("\\b" + day + "(st|nd|rd|th)?\\b"))) << source;
  }
}

TEST(Corpora, OfDatesNameTheRightWeekday) {
  const Corpus corpus = dates_corpus({.sizes = {5000, 0, 0}});
  const auto source_of = [&](const std::string& prefix) -> std::string {
    for (const auto& [source, target] : corpus.train) {
      if (source.rfind(prefix, 0) == 0) return fmt::format("{} = {}", source, target);
    }
    return "";
  };
  // By Zeller's congruence, the first date that begins with each name.
  const std::pair<const char*, int> weekdays[] = {
      {"Saturday,", 0}, {"Sunday,", 1}, {"Monday,", 2}, {"Friday,", 6}};
  for (const auto& [name, expected] : weekdays) {
    const std::string found = source_of(name);
    ASSERT_FALSE(found.empty());
    int year = std::stoi(found.substr(found.size() - 10, 4));
    int month = std::stoi(found.substr(found.size() - 5, 2));
    const int day = std::stoi(found.substr(found.size() - 2));
    if (month < 3) {
      month += 12;
      --year;
    }
    const int weekday =
        (day + 13 * (month + 1) / 5 + year % 100 + year % 100 / 4 + year / 400 + 5 * (year / 100)) %
        7;
    EXPECT_EQ(weekday, expected) << found;
  }
}

TEST(Corpora, RefuseWhatCannotBeDrawn) {
  const auto refuses = [](const auto& call, const Message& text) {
    EXPECT_THAT(call, ThrowsMessage<InvalidArgument>(text));
  };
  refuses([] { copy_corpus({.num_symbols = 2, .max_length = 2}, kSmall); },
          "copy_corpus: 390 examples are asked for, but only 6 are different");
  refuses([] { copy_corpus({.num_symbols = 27}); }, {"num_symbols", "27"});
  refuses([] { reverse_corpus({.min_length = 5, .max_length = 4}); }, {"max_length", "4"});
  refuses(
      [] {
        dates_corpus({.sizes = {73000, 49, 1}});
      },
      "dates_corpus: 73050 examples are asked for, but only 73049 are different");
  refuses(
      [] {
        number_words_corpus(Language::kEnglish, Language::kFrench, {.sizes = {1'000'000, 1, 0}});
      },
      "number_words_corpus: 1000001 examples are asked for, but only 1000000 are different");
  refuses([] { dates_corpus({.sizes = {-1, 0, 0}}); }, {"part", "-1"});
}

}  // namespace
}  // namespace heed::tasks
