// The parts of the lesson real-heads, one file each: the weights of one head and its score, names
// and entropies of all heads, and the changes when heads are switched off.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/inspect/model_heads.h"
#include "heed/inspect/model_reading.h"
#include "heed/models/model.h"
#include "lessons/report.h"

namespace heed::learn::real_heads_lesson {

// The model and the scores of its heads.
struct Subject {
  models::Model model;
  inspect::HeadScores scores;  // on the lesson's texts and on repeated tokens
};

// The head with the highest score of a pattern.
struct BestHead {
  inspect::TokenPattern pattern;
  bool is_repeated = false;  // scored on repeated tokens
  models::HeadIndex head = {};
  inspect::PatternScore found = {};
  std::int64_t num_named = 0;  // heads whose score earns the name

  bool is_named() const { return num_named > 0; }
};

// Returns one head for each pattern that has a row to score, in the order of the scores.
std::vector<BestHead> best_heads(const inspect::HeadScores& scores);

// Returns the best head of a pattern. Throws std::out_of_range where no row has the pattern.
BestHead best_head_of(const inspect::HeadScores& scores, const std::string& pattern);

// Returns layer and head, counted from 0: "4.10".
std::string name_of(models::HeadIndex head);

// Returns the weights of a head in a reading: [num_tokens, num_tokens].
FloatView weights_of_head(const inspect::ModelReading& reading, models::HeadIndex head);

void show_weights(Report& report, const Subject& subject);
void show_score(Report& report, const Subject& subject);
void show_names(Report& report, const Subject& subject);
void show_entropies(Report& report, const Subject& subject);
void show_switched_off(Report& report, const Subject& subject);
void show_values(Report& report, const Subject& subject);
void show_exercises(Report& report, const Subject& subject);
void draw_heads(Report& report, const Subject& subject);

}  // namespace heed::learn::real_heads_lesson
