#include <array>

#include "lessons/lesson.h"

namespace heed::cli {

// One file each.
extern const Lesson kSoftmaxLesson;
extern const Lesson kQkvLesson;
extern const Lesson kEmbeddingsLesson;
extern const Lesson kFromScratchLesson;
extern const Lesson kCausalLesson;
extern const Lesson kByHandLesson;
extern const Lesson kRunningExampleLesson;
extern const Lesson kSimpleAttentionLesson;
extern const Lesson kShortSequenceLesson;

std::span<const Lesson> all_lessons() {
  static const std::array lessons{
      kSoftmaxLesson,       kQkvLesson,    kEmbeddingsLesson,     kFromScratchLesson,
      kCausalLesson,        kByHandLesson, kRunningExampleLesson, kSimpleAttentionLesson,
      kShortSequenceLesson,
  };
  return lessons;
}

}  // namespace heed::cli
