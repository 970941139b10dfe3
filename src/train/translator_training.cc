#include "heed/train/translator_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "heed/core/config.h"
#include "heed/core/random.h"
#include "heed/nn/state_file.h"
#include "heed/train/translator_scores.h"
#include "io/io_error.h"
#include "io/json.h"
#include "train/run_settings.h"

namespace heed { inline namespace v0 { namespace train {

namespace fs = std::filesystem;

namespace {

// The log of epochs: one JSON object per line.
class EpochLog {
 public:
  // An empty path writes nothing. An existing log is replaced.
  explicit EpochLog(const std::filesystem::path& path);
  // Keeps only the lines of the first `epochs` epochs: a killed run may have written later lines,
  // which its resumption writes again.
  void keep(std::size_t epochs);
  // Throws IoError if the file cannot be written.
  void write(const nlohmann::json& line);

 private:
  std::filesystem::path path_;
  std::vector<std::string> old_lines_;
  std::ofstream stream_;
};

EpochLog::EpochLog(const fs::path& path) : path_(path) {
  if (path.empty()) return;
  if (fs::is_regular_file(path)) {
    std::ifstream old(path);
    for (std::string line; std::getline(old, line);) old_lines_.push_back(line);
  }
  keep(0);
}

void EpochLog::keep(std::size_t epochs) {
  if (path_.empty()) return;
  stream_ = std::ofstream(path_, std::ios::binary | std::ios::trunc);
  for (std::size_t i = 0; i < std::min(epochs, old_lines_.size()); ++i) {
    stream_ << old_lines_[i] << '\n';
  }
  stream_.flush();
  if (!stream_) io::throw_io_error("write", path_, errno);
}

void EpochLog::write(const nlohmann::json& line) {
  if (path_.empty()) return;
  stream_ << line.dump() << std::endl;
  if (!stream_) io::throw_io_error("write", path_, errno);
}

using Clock = std::chrono::steady_clock;

// The best model so far: in the folder of a run, otherwise in memory.
class BestModel {
 public:
  BestModel(Translator& translator, const RunFolder& folder)
      : translator_(translator), folder_(folder) {}

  void keep() {
    if (!folder_.path.empty()) {
      nn::save(folder_.model(), *translator_.model,
               {{"settings", to_json(translator_.settings).dump()}, {"format", "pt"}});
      return;
    }
    parameters_.clear();
    for (const auto& parameter : translator_.model->parameters()) {
      parameters_.push_back(to_tensor(parameter.value()));
    }
  }
  void restore() {
    if (!folder_.path.empty()) {
      nn::load(folder_.model(), *translator_.model);
      return;
    }
    auto kept = parameters_.begin();
    for (const auto& parameter : translator_.model->parameters()) {
      const auto values = (kept++)->elements();
      std::copy(values.begin(), values.end(), parameter.writable_value().data());
    }
  }

 private:
  Translator& translator_;
  const RunFolder& folder_;
  std::vector<Tensor<float>> parameters_;
};

// The batches of each epoch. They depend only on the seed and the epoch's number, so that a resumed
// run gets the same ones.
class EpochBatches {
 public:
  EpochBatches(std::vector<nn::SequencePair> pairs, const TrainingSettings& training)
      : pairs_(std::move(pairs)), training_(training) {
    draw(0);
  }

  std::int64_t per_epoch() const { return static_cast<std::int64_t>(batches_.size()); }
  bool ends_epoch(std::int64_t steps_done) const { return steps_done % per_epoch() == 0; }

  nn::SequenceBatch at(std::int64_t step) {
    const std::int64_t epoch = step / per_epoch();
    if (epoch != epoch_) draw(epoch);
    std::vector<nn::SequencePair> chosen;
    for (const std::int64_t index : batches_[static_cast<std::size_t>(step % per_epoch())]) {
      chosen.push_back(pairs_[static_cast<std::size_t>(index)]);
    }
    return nn::make_batch(chosen);
  }

 private:
  void draw(std::int64_t epoch) {
    constexpr std::uint64_t kPrime = 1'000'003;  // keeps neighbouring seeds apart
    TorchGenerator random(training_.seed * kPrime + static_cast<std::uint64_t>(epoch) + 1);
    batches_ = nn::shuffled_batches(pairs_, training_.batch, random);
    epoch_ = epoch;
  }

  std::vector<nn::SequencePair> pairs_;
  const TrainingSettings& training_;
  std::vector<std::vector<std::int64_t>> batches_;
  std::int64_t epoch_ = 0;
};

bool is_better(const EpochResult& a, const EpochResult& b) {
  return std::tie(a.bleu, a.exact) > std::tie(b.bleu, b.exact);
}

class EpochTraining final : public BetweenSteps {
 public:
  EpochTraining(Translator& translator, const tasks::Corpus& corpus, const RunPlace& place)
      : translator_(translator),
        corpus_(corpus),
        place_(place),
        batches_(translator.encode(corpus.train), translator.settings.training),
        best_(translator, place.folder),
        log_(place.log) {}

  StepLoss loss(std::int64_t step) {
    if (batches_.ends_epoch(step) || !has_started_) start_clock(batches_.ends_epoch(step));
    const nn::SequenceBatch batch = batches_.at(step);
    num_targets_now_ = batch.num_targets;
    return {nn::seq2seq_loss(*translator_.model, batch), batch.num_targets};
  }

  void after_step(const nn::TrainingStep& done, RunObserver& observer) override {
    loss_sum_ += done.loss * static_cast<double>(num_targets_now_);
    num_targets_ += num_targets_now_;
    tokens_here_ += num_targets_now_;
    if (batches_.ends_epoch(done.step)) end_epoch(done, observer);
  }

  bool is_over() const override {
    const std::int64_t patience = translator_.settings.epochs.patience;
    if (run_.epochs.empty() || patience == 0) return false;
    const auto without_better = static_cast<std::int64_t>(run_.epochs.size() - 1 - run_.best);
    return without_better >= patience || run_.epochs[run_.best].exact == 1;
  }

  std::string memory() const override {
    nlohmann::json json{{"loss_sum", loss_sum_}, {"num_targets", num_targets_}, {"epochs", {}}};
    for (const EpochResult& epoch : run_.epochs) json["epochs"].push_back(to_json(epoch));
    return json.dump();
  }

  void recall(const std::string& memory) override {
    try {
      const auto json = io::parse_json(memory);
      loss_sum_ = json.at("loss_sum");
      num_targets_ = json.at("num_targets");
      for (const auto& epoch : json.at("epochs")) {
        add({epoch.at("epoch"), epoch.at("loss"), epoch.at("bleu"), epoch.at("exact_match")});
      }
    } catch (const nlohmann::json::exception&) {
      throw std::runtime_error(fmt::format("'{}' does not say which epochs are done",
                                           place_.folder.checkpoint().string()));
    }
    log_.keep(run_.epochs.size());
  }

  TranslationRun finish(const RunOutcome& outcome) && {
    if (outcome.is_finished) best_.restore();
    run_.outcome = outcome;
    return std::move(run_);
  }

 private:
  void start_clock(bool is_whole) {
    has_started_ = true;
    is_whole_ = is_whole;
    tokens_here_ = 0;
    start_ = Clock::now();
  }

  void add(const EpochResult& result) {
    run_.epochs.push_back(result);
    if (is_better(result, run_.epochs[run_.best])) run_.best = run_.epochs.size() - 1;
  }

  void end_epoch(const nn::TrainingStep& done, RunObserver& observer) {
    const std::chrono::duration<double> elapsed = Clock::now() - start_;
    const EpochTime time{elapsed.count(), static_cast<double>(tokens_here_) / elapsed.count()};
    if (is_whole_) run_.times.push_back(time);
    const tasks::TranslationScore scores = score(translator_, corpus_.validation);
    const EpochResult result{done.step / batches_.per_epoch(),
                             loss_sum_ / static_cast<double>(num_targets_), scores.bleu.score,
                             scores.exact};
    add(result);
    const bool is_best = run_.best + 1 == run_.epochs.size();
    if (is_best) best_.keep();
    loss_sum_ = 0;
    num_targets_ = 0;
    nlohmann::json line = to_json(result);
    line["step"] = done.step;
    line["is_best"] = is_best;
    line["seconds"] = time.seconds;
    line["tokens_per_second"] = time.tokens_per_second;
    log_.write(line);
    observer.say(fmt::format(
        "{}{}epoch {}/{}  loss {:.4f}  validation BLEU {:.2f}, exact match {:.1f} %{}", place_.name,
        place_.name.empty() ? "" : "  ", result.epoch, translator_.settings.epochs.epochs,
        result.loss, result.bleu, 100 * result.exact, is_best ? "" : "  (not the best)"));
  }

  Translator& translator_;
  const tasks::Corpus& corpus_;
  const RunPlace& place_;
  EpochBatches batches_;
  BestModel best_;
  EpochLog log_;
  TranslationRun run_;
  double loss_sum_ = 0;  // over this epoch's targets so far
  std::int64_t num_targets_ = 0;
  std::int64_t num_targets_now_ = 0;  // in the current step
  std::int64_t tokens_here_ = 0;      // of this epoch, in this process
  Clock::time_point start_;
  bool has_started_ = false;
  bool is_whole_ = false;  // true if this process began the epoch
};

}  // namespace

TranslationRun train_translator(Translator& translator, const tasks::Corpus& corpus,
                                const RunPlace& place, RunObserver& observer) {
  EpochTraining training(translator, corpus, place);
  const RunOutcome outcome = run_training(
      {*translator.model, [&training](std::int64_t step) { return training.loss(step); },
       translator.settings.training, "tokens", to_json(translator.settings).dump(), &training},
      place.folder, observer);
  return std::move(training).finish(outcome);
}

}}}  // namespace heed::v0::train
