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
  // Used instead of teach() where the lesson examines a trained model, a folder or a file.
  void (*teach_of_model)(Report& report, const std::filesystem::path& model) = nullptr;
};

// The default model of a lesson, at the path to which `make models` writes it.
inline constexpr const char* kLessonModel = "build/models/all-MiniLM-L6-v2";

// Returns every lesson, in order of difficulty. To add one, write its file in this folder and add
// it to the list in lessons.cc.
std::span<const Lesson> all_lessons();

}  // namespace heed::learn
