// The parts of the lesson sparse-attention, one file each: patterns and their cost, how far
// information travels through layers, and the blocks that queries select.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/attention/mask.h"
#include "lessons/report.h"

namespace heed::learn::sparse_attention_lesson {

// A mask and the text of its expression.
struct Pattern {
  std::string name;
  Mask mask;
};
Pattern parsed(const std::string& text);

// Prints small masks next to each other, three per row: name, visible pairs and their share, lines.
void show_side_by_side(Report& report, const std::vector<Pattern>& patterns, std::int64_t length);

void show_patterns(Report& report);
void show_combinations(Report& report);
void show_costs(Report& report);
void show_reach(Report& report);
void show_gap(Report& report);
void show_selection(Report& report);
void show_equality(Report& report);
Figure draw_patterns(Theme theme);

}  // namespace heed::learn::sparse_attention_lesson
