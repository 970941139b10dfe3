// Figures of a comparison: what the tables of its report say, to look at.
#pragma once

#include <cstddef>

#include "heed/viz/figure.h"
#include "translation/comparison_report.h"

namespace heed::cli {

// Validation BLEU against epochs, a curve for each attention.
Figure learning_curves_figure(const ComparisonReport& report);

// Test BLEU against the length of the source, a curve for each attention: the bottleneck of a
// model without any.
Figure bleu_by_length_figure(const ComparisonReport& report);

// Both side by side.
Figure report_figure(const ComparisonReport& report);

// Where a model looked while it wrote one of the sentences: the mean of its heads. It must have
// attention and have written something.
Figure alignment_figure(const ComparedModel& model, std::size_t sentence);

}  // namespace heed::cli
