// Trains a translator epoch by epoch, and keeps the best.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "heed/tensor.h"
#include "train/session.h"
#include "translation/scores.h"
#include "translation/translator.h"

namespace heed::cli {

// What an epoch was worth.
struct EpochResult {
  std::int64_t epoch = 0;  // 1 after the first
  double loss = 0;         // mean cross entropy of a target token in training, in nats
  double bleu = 0;         // of the validation set
  double exact = 0;        // of the validation set
};

nlohmann::json to_json(const EpochResult& result);

// How long it took in this process: nothing of an epoch that another one computed.
struct EpochTime {
  double seconds = 0;            // training alone
  double tokens_per_second = 0;  // of targets, their ends included
};

struct TranslationRun {
  std::vector<EpochResult> epochs;
  std::vector<EpochTime> times;  // of the last epochs, those that this process has seen whole
  std::size_t best = 0;          // an index into epochs
};

// Where epochs are written, a JSON object a line.
class EpochLog {
 public:
  // Nowhere when the path is empty. A log that is there is replaced.
  explicit EpochLog(const std::filesystem::path& path);
  // Keeps the lines of the first `epochs` epochs: a run that was killed wrote some that it will
  // write again.
  void keep(std::size_t epochs);
  // Throws IoError when the file cannot be written.
  void write(const nlohmann::json& line);

 private:
  std::filesystem::path path_;
  std::vector<std::string> old_lines_;
  std::ofstream stream_;
};

// Where a run is kept, and what it is called on stderr.
struct RunPlace {
  RunFolder folder;
  std::filesystem::path log;
  std::string name;  // before each line about an epoch; empty: nothing
};

// Trains until the epochs are done, or patience is; the translator then has its best model, which
// the folder has too. Throws Interrupted as train().
TranslationRun train_translator(Translator& translator, const tasks::Corpus& corpus,
                                const RunPlace& place);

}  // namespace heed::cli
