// A lesson: one demonstration, printed step by step.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

#include "lessons/report.h"

namespace heed::learn {

struct Lesson {
  std::string_view name;
  std::string_view shows;  // one line: what a reader learns
  void (*teach)(Report& report) = nullptr;
  // Instead of the other, where the lesson looks at a trained model: a folder or a file.
  void (*teach_of_model)(Report& report, const std::filesystem::path& model) = nullptr;
};

// The model of a lesson where no other is named: where `make models` puts it.
inline constexpr const char* kLessonModel = "build/models/all-MiniLM-L6-v2";

// Every lesson, in the order in which a beginner would take them. To add one, write its file beside
// this one and add it to the list in lessons.cc.
std::span<const Lesson> all_lessons();

}  // namespace heed::learn
