#include <array>

#include "lessons/lesson.h"

namespace heed::learn {

// Each lesson has its own file.
extern const Lesson kSoftmaxLesson;
extern const Lesson kQkvLesson;
extern const Lesson kEmbeddingsLesson;
extern const Lesson kFromScratchLesson;
extern const Lesson kCausalLesson;
extern const Lesson kByHandLesson;
extern const Lesson kRunningExampleLesson;
extern const Lesson kSimpleAttentionLesson;
extern const Lesson kShortSequenceLesson;
extern const Lesson kDemonstrateAttentionLesson;
extern const Lesson kDemonstrateCausalAttentionLesson;
extern const Lesson kScalingLesson;
extern const Lesson kMasksLesson;
extern const Lesson kMaskedRowsLesson;
extern const Lesson kTemperatureLesson;
extern const Lesson kHeadsLesson;
extern const Lesson kSelfAndCrossLesson;
extern const Lesson kPositionLesson;
extern const Lesson kRelativePositionsLesson;
extern const Lesson kComplexityLesson;
extern const Lesson kSparseAttentionLesson;
extern const Lesson kFlashAttentionLesson;
extern const Lesson kLinearAttentionLesson;
extern const Lesson kKvCacheLesson;
extern const Lesson kVariationsLesson;
extern const Lesson kRnnAgainstAttentionLesson;
extern const Lesson kBottleneckLesson;
extern const Lesson kBahdanauLesson;
extern const Lesson kLuongLesson;
extern const Lesson kSeq2SeqLesson;
extern const Lesson kHeadsLearnLesson;
extern const Lesson kRealHeadsLesson;
extern const Lesson kDiagnoseLesson;

std::span<const Lesson> all_lessons() {
  static const std::array lessons{
      kSoftmaxLesson,
      kQkvLesson,
      kEmbeddingsLesson,
      kFromScratchLesson,
      kCausalLesson,
      kByHandLesson,
      kRunningExampleLesson,
      kSimpleAttentionLesson,
      kShortSequenceLesson,
      kDemonstrateAttentionLesson,
      kDemonstrateCausalAttentionLesson,
      kScalingLesson,
      kMasksLesson,
      kMaskedRowsLesson,
      kTemperatureLesson,
      kHeadsLesson,
      kSelfAndCrossLesson,
      kPositionLesson,
      kRelativePositionsLesson,
      kComplexityLesson,
      kSparseAttentionLesson,
      kFlashAttentionLesson,
      kLinearAttentionLesson,
      kKvCacheLesson,
      kVariationsLesson,
      kRnnAgainstAttentionLesson,
      kBottleneckLesson,
      kBahdanauLesson,
      kLuongLesson,
      kSeq2SeqLesson,
      kHeadsLearnLesson,
      kRealHeadsLesson,
      kDiagnoseLesson,
  };
  return lessons;
}

}  // namespace heed::learn
