// Draws the tables of a comparison's report as figures.
#pragma once

#include <cstddef>

#include "heed/viz/figure.h"
#include "translation/comparison_report.h"

namespace heed::cli {

// Draws validation BLEU against epochs, a curve for each attention.
Figure learning_curves_figure(const ComparisonReport& report);

// Draws test BLEU against the source length, a curve for each attention. It shows the bottleneck of
// a model without attention.
Figure bleu_by_length_figure(const ComparisonReport& report);

// Draws both figures side by side.
Figure report_figure(const ComparisonReport& report);

// Draws the alignment of one sentence: the mean of the heads. The model must have attention and
// have written at least one token.
Figure alignment_figure(const ComparedModel& model, std::size_t sentence);

}  // namespace heed::cli
