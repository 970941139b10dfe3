#include "bench/model_runs.h"

#include <algorithm>
#include <optional>
#include <span>
#include <sstream>
#include <string_view>
#include <utility>

#include "heed/core/error.h"
#include "heed/core/random.h"
#include "heed/models/generate.h"
#include "heed/tasks/shipped_text.h"

namespace heed::cli {

namespace {

using Ids = std::vector<std::int64_t>;

constexpr std::size_t kSentences = 64;

// Returns `count` ids of the story that heed ships, repeated as needed.
Ids story_ids(const models::Model& model, std::int64_t count) {
  const Ids story =
      model.tokenizer().encode(tasks::shipped_text(), {.add_special_tokens = false}).ids;
  if (story.empty()) {
    throw InvalidArgument("bench model: the tokenizer finds no token in an English story");
  }
  Ids ids;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    ids.push_back(story[i % story.size()]);
  }
  return ids;
}

// Returns parts of the story of 4 to 40 words, in mixed lengths.
std::vector<std::string> story_sentences() {
  std::istringstream story{std::string(tasks::shipped_text())};
  std::vector<std::string> words;
  for (std::string word; story >> word;) words.push_back(std::move(word));
  std::vector<std::string> sentences(kSentences);
  std::size_t next = 0;
  for (std::size_t i = 0; i < kSentences; ++i) {
    const std::size_t length = 4 + 7 * i % 37;
    for (std::size_t word = 0; word < length; ++word) {
      sentences[i] += (word == 0 ? "" : " ") + words[next++ % words.size()];
    }
  }
  return sentences;
}

class ModelRuns {
 public:
  ModelRuns(const ModelRequest& request, models::Model model, Progress& progress)
      : request_(request), model_(std::move(model)), progress_(progress) {}

  // Each start frees the model and loads it again; afterwards the weights are in memory.
  void write() {
    const std::int64_t longest = request_.past.empty() ? 0 : request_.past.back();
    const Ids ids = story_ids(*model_, std::max(longest, request_.prompt));
    const auto prompt = std::span(ids).first(static_cast<std::size_t>(request_.prompt));
    findings_.input = {{"ids", ids}};
    findings_.written = nlohmann::ordered_json::array();
    for (const std::int64_t threads : request_.threads) {
      measure_work({{"work", "start"}, {"past", 0}, {"tokens", request_.prompt}}, threads, [&] {
        load();
        nn::Past past = model_->make_past();
        return next_token(read(prompt, past));
      });
      measure_work({{"work", "read"}, {"past", 0}, {"tokens", request_.prompt}}, threads, [&] {
        nn::Past past = model_->make_past();
        return next_token(read(prompt, past));
      });
    }
    nn::Past past = model_->make_past();
    for (const std::int64_t length : request_.past) measure_writing(ids, length, past);
  }

  void embed() {
    const std::vector<std::string> sentences = story_sentences();
    findings_.input = {{"sentences", sentences}};
    const models::ModelConfig& config = model_->config();
    const std::int64_t most =
        std::min(config.max_positions, config.pooling.value_or(models::Pooling{}).max_tokens);
    std::int64_t tokens = 0;
    for (const std::string& sentence : sentences) {
      const Ids ids = model_->tokenizer().encode(sentence).ids;
      tokens += std::min(static_cast<std::int64_t>(ids.size()), most);
    }
    for (const std::int64_t threads : request_.threads) {
      measure_work({{"work", "start"}, {"sentences", 1}}, threads, [&] {
        load();
        return model_->embed(std::span(sentences).first(1));
      });
      measure_work({{"work", "embed"}, {"sentences", kSentences}, {"tokens", tokens}}, threads,
                   [&] { return model_->embed(sentences); });
    }
  }

  ModelFindings take() { return std::move(findings_); }

 private:
  void load() {
    model_.reset();
    model_ = models::load(request_.path);
  }

  // Returns the hidden state of the last token, [1, hidden_size].
  Tensor<float> read(std::span<const std::int64_t> ids, nn::Past& past) const {
    const Tensor<float> hidden = model_->forward(ids, past);
    const std::int64_t rows = hidden.extent(0);
    return to_tensor(hidden.view().slice(0, rows - 1, rows));
  }

  // Returns the most likely next token.
  std::int64_t next_token(const Tensor<float>& hidden) const {
    TorchGenerator none(0);
    const Tensor<float> logits = model_->logits(hidden);
    return models::choose_token(logits.elements(), {}, none);
  }

  // Measures writing after the first `length` tokens. `past` holds those that were read before; the
  // missing ones are read in pieces as long as the prompt, which bounds the memory.
  void measure_writing(const Ids& ids, std::int64_t length, nn::Past& past) {
    const auto part = [&](std::int64_t begin, std::int64_t end) {
      return std::span(ids).subspan(static_cast<std::size_t>(begin),
                                    static_cast<std::size_t>(end - begin));
    };
    // Reads all but the last token, with which each run begins.
    while (past.length() < length - 1) {
      const std::int64_t end = std::min(past.length() + request_.prompt, length - 1);
      model_->forward(part(past.length(), end), past);
    }
    nn::Past start = past;
    const Tensor<float> hidden = read(part(length - 1, length), start);
    Ids written;
    for (const std::int64_t threads : request_.threads) {
      measure_work({{"work", "write"}, {"past", length}, {"tokens", request_.tokens}}, threads,
                   [&] { return written = write_behind(hidden, start); });
    }
    findings_.written.push_back({{"past", length}, {"ids", written}});
  }

  // `past` is a copy that shares its pages with the original.
  Ids write_behind(Tensor<float> hidden, nn::Past past) const {
    Ids written;
    for (std::int64_t i = 0; i < request_.tokens; ++i) {
      written.push_back(next_token(hidden));
      hidden = read(std::span(written).last(1), past);
    }
    return written;
  }

  template <class Call>
  void measure_work(nlohmann::ordered_json description, std::int64_t threads, const Call& call) {
    Outcome outcome;
    outcome.description = std::move(description);
    outcome.description["threads"] = threads;
    const Sampling sampling{.threads = static_cast<int>(threads),
                            .warmups = 1,
                            .repetitions = request_.repetitions,
                            .seconds_per_repetition = 0};
    progress_.start_case();
    outcome.threads = sampling.threads;
    const auto work = [&call] { call(); };
    const FunctionRef<void()> timed = work;
    outcome.seconds = time_in_turn(sampling, {&timed, 1}, progress_.counting(sampling.repetitions))
                          .front()
                          .seconds;
    findings_.outcomes.push_back(std::move(outcome));
  }

  const ModelRequest& request_;
  std::optional<models::Model> model_;
  Progress& progress_;
  ModelFindings findings_;
};

}  // namespace

ModelFindings measure_model(const ModelRequest& request, models::Model model) {
  const bool writes = model.config().is_causal();
  const std::size_t cases = request.threads.size() * (2 + (writes ? request.past.size() : 0));
  Progress progress(static_cast<int>(cases));
  ModelRuns runs(request, std::move(model), progress);
  if (writes) {
    runs.write();
  } else {
    runs.embed();
  }
  return runs.take();
}

}  // namespace heed::cli
