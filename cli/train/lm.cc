// heed train lm: attention learns to write.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arguments.h"
#include "heed/error.h"
#include "train/characters.h"
#include "train/language_model.h"
#include "train/positions.h"
#include "train/session.h"
#include "train/text_file.h"
#include "train/train_verbs.h"
#include "verbs.h"

namespace heed::cli {

namespace {

constexpr const char* kLmTask = "lm";

struct LmArguments {
  TrainArguments train{{.steps = 500, .batch = 16}, {}, {}};
  ModelSettings model;
  std::string text;
};

// The text that is learned, and the last tenth of it, which is not.
struct Corpus {
  explicit Corpus(std::string_view text)
      : characters(text), ids(characters.encode(text)), text_checksum(checksum(text)) {}

  Characters characters;
  std::vector<std::int32_t> ids;
  std::string text_checksum;

  std::size_t num_learned() const { return ids.size() - ids.size() / 10; }
  Ids learned() const { return Ids(ids).first(num_learned()); }
  Ids held_out() const { return Ids(ids).subspan(num_learned()); }
};

nlohmann::json new_settings(const LmArguments& arguments, const Corpus& corpus) {
  ModelSettings model = arguments.model;
  model.vocab_size = corpus.characters.size();
  check(arguments.train.training);
  check(model);
  return {{"task", kLmTask},
          {"training", to_json(arguments.train.training)},
          {"model", to_json(model)},
          {"characters", corpus.characters.all()},
          {"text", corpus.text_checksum}};
}

nlohmann::json resumed_settings(const RunFolder& folder, const Corpus& corpus) {
  nlohmann::json settings = read_settings(folder, kLmTask);
  if (text_setting(settings, "text", folder.checkpoint()) != corpus.text_checksum) {
    throw std::runtime_error(
        fmt::format("'{}' was trained on another text; give it with --text", folder.path.string()));
  }
  return settings;
}

struct LossAtLength {
  std::int64_t length;
  std::optional<TextLoss> loss;  // nothing where positions end, or the text
};

// What the model makes of text it has not seen, also in sequences longer than it was trained on.
std::vector<LossAtLength> held_out_losses(CausalModel& model, const Corpus& corpus,
                                          std::int64_t context) {
  std::vector<LossAtLength> result;
  for (const std::int64_t factor : {1, 2, 4}) {
    const std::int64_t length = factor * context;
    result.push_back({length, loss_over(model, corpus.held_out(), length)});
  }
  return result;
}

void print_json(const nlohmann::json& settings, const LossAtLength& learned,
                const std::vector<LossAtLength>& held_out) {
  const auto describe = [](const LossAtLength& at) -> nlohmann::json {
    if (!at.loss) return {{"length", at.length}, {"loss", nullptr}, {"sequences", 0}};
    return {{"length", at.length}, {"loss", at.loss->mean}, {"sequences", at.loss->measured}};
  };
  nlohmann::json json = settings;
  json["loss"] = describe(learned)["loss"];
  json["sequences"] = describe(learned)["sequences"];
  json["held_out"] = nlohmann::json::array();
  for (const LossAtLength& at : held_out) json["held_out"].push_back(describe(at));
  std::cout << json.dump() << '\n';
}

void print_summary(const Corpus& corpus, const CausalModel& model, const LossAtLength& learned,
                   const std::vector<LossAtLength>& held_out) {
  std::cout << fmt::format("text   {} characters, {} different; the last tenth is held out\n",
                           corpus.ids.size(), corpus.characters.size())
            << fmt::format("model  {} parameters\n", model.num_parameters());
  const auto line = [&](const char* name, const char* text, const LossAtLength& at) {
    const char* reason = at.loss                          ? ""
                         : at.length > model.max_length() ? ": no position was learned there"
                                                          : ": it is shorter";
    const bool is_part = at.loss && at.loss->measured < at.loss->sequences;
    const std::string part =
        is_part ? fmt::format("{} of {} ", at.loss->measured, at.loss->sequences) : "";
    std::cout << fmt::format("{:5}  {:5}  on {}, in {}sequences of {}{}\n", name,
                             at.loss ? fmt::format("{:.3f}", at.loss->mean) : "-", text, part,
                             at.length, reason);
  };
  line("loss", "what it learned from", learned);
  for (const LossAtLength& at : held_out) line("", "what was held out", at);
}

void run_lm(const LmArguments& arguments) {
  const Corpus corpus =
      arguments.text.empty() ? Corpus(shipped_text()) : Corpus(read_text_file(arguments.text));
  const RunFolder folder = open_run(arguments.train);
  const nlohmann::json settings =
      folder.is_resumed ? resumed_settings(folder, corpus) : new_settings(arguments, corpus);
  const TrainingSettings training = training_settings(settings, folder.checkpoint());
  const ModelSettings sizes = model_settings(settings, folder.checkpoint());
  if (corpus.learned().size() <= static_cast<std::size_t>(sizes.context)) {
    throw std::runtime_error(fmt::format(
        "the text has {} characters, expected more than --context, {}, without the last tenth",
        corpus.ids.size(), sizes.context));
  }
  set_seed(training.seed);
  CausalModel model(sizes);
  const auto loss = [&](std::int64_t) -> StepLoss {
    return {random_batch_loss(model, corpus.learned(), training.batch, sizes.context),
            training.batch * sizes.context};
  };
  train({model, loss, "characters", settings}, folder);
  const LossAtLength learned{sizes.context, loss_over(model, corpus.learned(), sizes.context)};
  const auto held_out = held_out_losses(model, corpus, sizes.context);
  if (arguments.train.as_json) {
    print_json(settings, learned, held_out);
  } else {
    print_summary(corpus, model, learned, held_out);
  }
}

}  // namespace

void add_train_lm(CLI::App& train) {
  CLI::App* verb = train.add_subcommand("lm", "Predict the next character of a text");
  const auto arguments = std::make_shared<LmArguments>();
  add_option(*verb, "--text", arguments->text,
             "What to learn, in UTF-8; a short story that comes with heed if not given")
      ->type_name("FILE");
  add_training_options(*verb, arguments->train);
  ModelSettings& model = arguments->model;
  const auto add = [&](const std::string& name, auto& value, const std::string& text) {
    CLI::Option* option =
        add_option(*verb, name, value, text)->capture_default_str()->type_name("N");
    exclude_from_resume(*verb, option);
    return option;
  };
  add("--positions", model.positions, "How the model knows where a character stands")
      ->check(CLI::IsMember(position_names()).description(""))
      ->type_name(fmt::format("{}", fmt::join(position_names(), "|")));
  add("--mask", model.mask,
      "Which earlier characters are seen, by name: \"streaming(4, 32)\"; none: all of them")
      ->type_name("MASK");
  add("--layers", model.layers, "Blocks of attention and feed-forward");
  add("--d-model", model.d_model, "Numbers per character, a multiple of the heads");
  add("--heads", model.heads, "Heads of attention");
  add("--context", model.context, "Characters in a sequence");
  verb->footer(
      "Losses are cross-entropies in nats a character; a uniform guess among n characters\n"
      "has ln n. `heed generate` writes with the model that --save keeps.");
  verb->callback([arguments] { run_lm(*arguments); });
}

}  // namespace heed::cli
