// The parts of the lesson relative-positions, one file each: why absolute positions express
// distances, and how scores depend on the distance for each kind of positions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lessons/report.h"

namespace heed::learn::relative_positions_lesson {

inline constexpr std::int64_t kWidth = 32;      // of vectors, queries and keys
inline constexpr std::int64_t kTrained = 128;   // positions in a training sequence
inline constexpr std::int64_t kLongest = 1024;  // positions that are tested
inline constexpr std::int64_t kClipped = 32;    // the largest distance that clip distinguishes
inline constexpr std::int64_t kShownHead = 2;   // the head, of kHeads, whose ALiBi slope is shown
inline constexpr std::int64_t kHeads = 4;

// A kind of positions: its effect on the score of a query and a key with the same content
// everywhere.
struct Kind {
  std::string name;
  std::string equation;
  // Element j is the score of the query at `position` and the key j positions before it.
  std::function<std::vector<double>(std::int64_t position)> scores;
  bool ends = false;  // true if there are no positions beyond kTrained
};
std::vector<Kind> all_kinds();

// Return lines of a table with a column for each distance: the head, and the scores that exist.
std::string head_of(std::span<const std::size_t> distances);
std::string line_of(std::string_view name, const std::vector<double>& scores,
                    std::span<const std::size_t> distances);

void show_sinusoidal(Report& report);
void show_rotary(Report& report);
void show_distances(Report& report, const std::vector<Kind>& kinds);
void show_beyond(Report& report, const std::vector<Kind>& kinds);
void show_parameters(Report& report);
Drawing drawing_of_scores(const std::vector<Kind>& kinds);

}  // namespace heed::learn::relative_positions_lesson
