#include "heed/tasks/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "tasks/split.h"

namespace heed { inline namespace v0 { namespace tasks {

namespace {

void check_sequences(const char* task, const SequenceOptions& options) {
  if (options.num_symbols < 1 || options.num_symbols > 26) {
    throw InvalidArgument(
        fmt::format("{}: num_symbols is {}, expected 1 to 26", task, options.num_symbols));
  }
  if (options.min_length < 1 || options.max_length < options.min_length ||
      options.max_length > 1000) {
    throw InvalidArgument(
        fmt::format("{}: min_length is {} and max_length {}; expected 1 ≤ min_length ≤ max_length "
                    "≤ 1000",
                    task, options.min_length, options.max_length));
  }
}

// Turns "abc" into "a b c".
std::string spaced(const std::string& symbols) {
  return fmt::format("{}", fmt::join(symbols.begin(), symbols.end(), " "));
}

std::vector<std::string> draw_sequences(const char* task, const SequenceOptions& options,
                                        const DrawOptions& draw) {
  check_sequences(task, options);
  Draws draws(draw.seed);
  return draw_keys<std::string>(task, draw.sizes, draws, [&] {
    std::string symbols;
    for (auto left = draws.between(options.min_length, options.max_length); left > 0; --left) {
      symbols += static_cast<char>('a' + draws.below(options.num_symbols));
    }
    return symbols;
  });
}

Units units_of(Language language) {
  return language == Language::kGerman ? Units::kCharacters : Units::kWords;
}

using Names = std::array<std::string_view, 12>;
constexpr Names kMonths{"January", "February", "March",     "April",   "May",      "June",
                        "July",    "August",   "September", "October", "November", "December"};
constexpr std::array<std::string_view, 7> kWeekdays{"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                    "Thursday", "Friday", "Saturday"};

// Returns "rd" for 3.
const char* ordinal_ending(unsigned day) {
  if (day / 10 == 1) return "th";
  switch (day % 10) {
    case 1:
      return "st";
    case 2:
      return "nd";
    case 3:
      return "rd";
    default:
      return "th";
  }
}

constexpr std::int64_t kNumDateForms = 10;

std::string written_date(std::chrono::sys_days days, std::int64_t form) {
  const std::chrono::year_month_day date(days);
  const auto day = static_cast<unsigned>(date.day());
  const auto month_number = static_cast<unsigned>(date.month());
  const int year = static_cast<int>(date.year());
  const std::string_view month = kMonths[month_number - 1];
  const std::string_view weekday = kWeekdays[std::chrono::weekday(days).c_encoding()];
  const char* const ending = ordinal_ending(day);
  switch (form) {
    case 0:
      return fmt::format("{} {} {}", day, month, year);
    case 1:
      return fmt::format("{} {}, {}", month, day, year);
    case 2:
      return fmt::format("{}{} of {} {}", day, ending, month, year);
    case 3:
      return fmt::format("{} {} {}", month.substr(0, 3), day, year);
    case 4:
      return fmt::format("{}, {} {} {}", weekday, day, month, year);
    case 5:
      return fmt::format("{} {} {} {}", weekday.substr(0, 3), day, month.substr(0, 3), year);
    case 6:
      return fmt::format("the {}{} of {}, {}", day, ending, month, year);
    case 7:
      return fmt::format("{}.{}.{}", day, month_number, year);
    case 8:
      return fmt::format("{}/{}/{}", year, month_number, day);
    default:
      return fmt::format("{} {}{}, {}", month, day, ending, year);
  }
}

std::string iso_date(std::chrono::sys_days days) {
  const std::chrono::year_month_day date(days);
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
}

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

}  // namespace

Corpus copy_corpus(const SequenceOptions& sequences, const DrawOptions& draw) {
  return corpus_of(draw_sequences("copy_corpus", sequences, draw), draw.sizes,
                   [](const std::string& symbols) {
                     return Example{spaced(symbols), spaced(symbols)};
                   });
}

Corpus reverse_corpus(const SequenceOptions& sequences, const DrawOptions& draw) {
  return corpus_of(draw_sequences("reverse_corpus", sequences, draw), draw.sizes,
                   [](const std::string& symbols) {
                     const std::string reversed(symbols.rbegin(), symbols.rend());
                     return Example{spaced(symbols), spaced(reversed)};
                   });
}

Corpus number_words_corpus(Language from, Language to, const DrawOptions& draw) {
  Draws draws(draw.seed);
  constexpr std::array<std::int64_t, 7> kPowers{0, 10, 100, 1000, 10000, 100000, 1000000};
  const auto keys = draw_numbers("number_words_corpus", draw.sizes, draws, kPowers.back(), [&] {
    const auto digits = static_cast<std::size_t>(draws.between(1, 6));
    return draws.between(kPowers[digits - 1], kPowers[digits] - 1);
  });
  Corpus corpus = corpus_of(keys, draw.sizes, [=](std::int64_t number) {
    return Example{number_words(number, from), number_words(number, to)};
  });
  corpus.source_units = units_of(from);
  corpus.target_units = units_of(to);
  return corpus;
}

Corpus dates_corpus(const DrawOptions& draw) {
  using std::chrono::January;
  using std::chrono::sys_days;
  using std::chrono::year;
  const sys_days first = year(1900) / January / 1;
  const std::int64_t num_days = (sys_days(year(2100) / January / 1) - first).count();
  Draws draws(draw.seed);
  const auto keys = draw_numbers("dates_corpus", draw.sizes, draws, num_days,
                                 [&] { return draws.below(num_days); });
  Corpus corpus = corpus_of(keys, draw.sizes, [&](std::int64_t offset) {
    const sys_days day = first + std::chrono::days(offset);
    std::string written = written_date(day, draws.below(kNumDateForms));
    if (draws.below(4) == 0) written = lower_case(std::move(written));
    return Example{std::move(written), iso_date(day)};
  });
  corpus.source_units = corpus.target_units = Units::kCharacters;
  return corpus;
}

}}}  // namespace heed::v0::tasks
