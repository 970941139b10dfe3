// A lesson: one demonstration of the tutorials, printed step by step.
#pragma once

#include <span>
#include <string_view>

#include "lessons/report.h"

namespace heed::learn {

struct Lesson {
  std::string_view name;
  std::string_view shows;  // one line: what a reader learns
  void (*teach)(Report& report);
};

// Every lesson, in the order in which a beginner would take them. To add one, write its file beside
// this one and add it to the list in lessons.cc.
std::span<const Lesson> all_lessons();

}  // namespace heed::learn
