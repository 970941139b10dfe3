// The parts of the lesson sparse-attention, a file each: patterns and what they cost, how far
// information travels through layers, and the blocks that queries choose.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/attention/mask.h"
#include "lessons/report.h"

namespace heed::learn::sparse_attention_lesson {

// A mask under the text that it prints itself as.
struct Pattern {
  std::string name;
  Mask mask;
};
Pattern parsed(const std::string& text);

// Small masks next to each other, three in a row: name, visible pairs and their share, lines.
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
