#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "heed/io/safetensors.h"
#include "heed/tasks/vocabulary.h"
#include "support/child.h"
#include "support/command.h"

namespace heed { namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing_support::Child;
using testing_support::CommandResult;
using testing_support::read_text;
using testing_support::run_command;
using Arguments = std::vector<std::string>;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Returns the epochs of a log without the members that depend on time.
std::vector<nlohmann::json> epochs_of(const std::string& path) {
  std::vector<nlohmann::json> epochs;
  for (const std::string& line : lines_of(read_text(path))) {
    epochs.push_back(nlohmann::json::parse(line));
    epochs.back().erase("seconds");
    epochs.back().erase("tokens_per_second");
  }
  return epochs;
}

class Translate : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_ / name; }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
  }

  // Returns a run of a tiny model with dropout that is saved often: 6 steps per epoch.
  static Arguments tiny(const Arguments& more) {
    Arguments arguments{"train",        "translate", "--task",     "copy", "--max-length", "3",
                        "--examples",   "24",        "--held-out", "4",    "--d-model",    "8",
                        "--batch",      "4",         "--epochs",   "6",    "--patience",   "0",
                        "--save-every", "4",         "--seed",     "7"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  static void expect_error(int exit_code, const Arguments& arguments, const std::string& text) {
    const CommandResult result = run_command(arguments);
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, HasSubstr(text));
  }

  testing_support::TemporaryFolder folder_;
};

// A model that has learned to reverse three letters. Tests that only read it share it.
class TrainedTranslator : public Translate {
 protected:
  static void SetUpTestSuite() {
    shared = std::make_unique<testing_support::TemporaryFolder>();
    trained = run_command({"train",       "translate",  "--task",    "reverse",      "--max-length",
                           "3",           "--examples", "1500",      "--held-out",   "60",
                           "--attention", "general",    "--d-model", "48",           "--batch",
                           "20",          "--epochs",   "12",        "--lr",         "0.01",
                           "--save",      model(),      "--json",    *shared / "log"});
  }
  static void TearDownTestSuite() { shared.reset(); }
  static std::string model() { return *shared / "model"; }
  static std::string log() { return *shared / "log"; }
  static nlohmann::json evaluated(const Arguments& more) {
    Arguments arguments{"evaluate", "--model", model(), "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const CommandResult result = run_command(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out);
  }

  static std::unique_ptr<testing_support::TemporaryFolder> shared;
  static CommandResult trained;
};
std::unique_ptr<testing_support::TemporaryFolder> TrainedTranslator::shared;
CommandResult TrainedTranslator::trained;

// The state of a run that was killed after writing its description and before its first checkpoint.
TEST_F(Translate, ARunThatEndedBeforeItsFirstCheckpointBeginsAnew) {
  ASSERT_EQ(run_command(tiny({"--save", path("run")})).exit_code, 0);
  const std::string model = read_text(path("run/model.safetensors"));
  for (const char* file : {"model.safetensors", "checkpoint.safetensors"}) {
    std::filesystem::remove(path("run") + '/' + file);
  }
  const CommandResult resumed = run_command({"train", "translate", "--resume", path("run")});
  EXPECT_EQ(resumed.exit_code, 1);
  EXPECT_THAT(resumed.err, HasSubstr("has no checkpoint, checkpoint.safetensors"));
  const CommandResult other = run_command(tiny({"--save", path("run"), "--lr", "0.5"}));
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_THAT(other.err, HasSubstr("holds 'settings.json' already"));
  ASSERT_EQ(run_command(tiny({"--save", path("run")})).exit_code, 0);
  EXPECT_EQ(read_text(path("run/model.safetensors")), model);
}

TEST_F(Translate, AKilledRunResumesToTheSameBits) {
  for (const std::string attention : {"additive", "multihead"}) {
    const std::string whole = path(attention);
    ASSERT_EQ(run_command(tiny({"--attention", attention, "--save", whole, "--json", path("log")}))
                  .exit_code,
              0);
    const auto epochs = epochs_of(path("log"));
    ASSERT_EQ(epochs.size(), 6U);
    for (int round = 0; round < 3; ++round) {
      const std::string run = whole + std::to_string(round);
      const std::string log = path("log" + std::to_string(round));
      {
        Child child(tiny({"--attention", attention, "--save", run, "--json", log}));
        child.wait_for("epoch 2/6");
        ::usleep(static_cast<useconds_t>(2300 * round));
        child.send(SIGKILL);
        child.finish();
      }
      const CommandResult resumed =
          run_command({"train", "translate", "--resume", run, "--json", log});
      ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
      for (const char* file : {"/checkpoint.safetensors", "/model.safetensors", "/settings.json"}) {
        EXPECT_TRUE(read_text(run + file) == read_text(whole + file)) << attention << round << file;
      }
      EXPECT_EQ(epochs_of(log), epochs);
    }
  }
}

TEST_F(Translate, CtrlCSavesAndExitsWith130) {
  Arguments endless = tiny({"--save", path("run")});
  *std::find(endless.begin(), endless.end(), "6") = "100000";
  Child child(endless);
  child.wait_for("epoch 2/100000");
  child.send(SIGINT);
  const CommandResult result = child.finish();
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_THAT(result.err, HasSubstr("`heed train translate --resume " + path("run") + "` goes on"));
  const auto step = read_safetensors(path("run/checkpoint.safetensors")).metadata.at("step");
  EXPECT_THAT(result.err, HasSubstr("interrupted after step " + step + " of 600000"));
  EXPECT_EQ(run_command({"translate", "--model", path("run"), "a b"}).exit_code, 0);
}

TEST_F(Translate, AFullDiskLeavesTheLastCheckpoint) {
  {
    Child child(tiny({"--save", path("run")}));
    child.wait_for("epoch 1/6");
    child.send(SIGINT);
    child.finish();
  }
  const std::string before = read_text(path("run/checkpoint.safetensors"));
  Child child({"train", "translate", "--resume", path("run")}, [] {
    const rlimit limit{5000, 5000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    ::signal(SIGXFSZ, SIG_IGN);
  });
  const CommandResult result = child.finish();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("cannot write"), HasSubstr("File too large")));
  EXPECT_TRUE(read_text(path("run/checkpoint.safetensors")) == before);
  for (const auto& file : std::filesystem::directory_iterator(path("run"))) {
    EXPECT_NE(file.path().extension(), ".tmp") << file.path();
  }
}

TEST_F(Translate, PatienceEndsTheRunAndTheBestModelIsKept) {
  // At a learning rate of 1e-9 the model learns nothing, so that no epoch is better than the first.
  const CommandResult result = run_command(
      {"train",      "translate", "--task", "copy",      "--examples", "20",       "--held-out",
       "5",          "--d-model", "4",      "--lr",      "1e-9",       "--epochs", "50",
       "--patience", "2",         "--save", path("run"), "--json",     path("log")});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("best   epoch 1 of 3: "));
  EXPECT_EQ(epochs_of(path("log")).size(), 3U);
  const CommandResult again = run_command({"train", "translate", "--resume", path("run")});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("best   epoch 1 of 3: "));
}

TEST_F(TrainedTranslator, LearnsToReverse) {
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_THAT(trained.err, AllOf(HasSubstr("tokens/s"), HasSubstr("epoch 1/12  loss ")));
  EXPECT_THAT(trained.out, AllOf(HasSubstr("reverse up to 3 symbols: 1500 examples"),
                                 HasSubstr("test   BLEU ")));
  EXPECT_GT(evaluated({}).at("exact_match").get<double>(), 0.9);
}

TEST_F(TrainedTranslator, TranslatesArgumentsAndLines) {
  const Arguments translate{"translate", "--model", model()};
  const auto with = [&](const Arguments& more) {
    Arguments arguments = translate;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_command(arguments);
  };
  EXPECT_EQ(with({"a b c"}).out, "c b a\n");
  EXPECT_EQ(with({"a", "b", "c", "--beam", "4"}).out, "c b a\n");
  write("in", "a b c\r\n\nd e\n");
  EXPECT_EQ(run_command(translate, {}, "", path("in")).out, "c b a\n\ne d\n");
  const CommandResult unknown = with({"a zebra"});
  EXPECT_EQ(unknown.exit_code, 0);
  EXPECT_THAT(unknown.err, HasSubstr("the model has never seen zebra"));
}

TEST_F(TrainedTranslator, ShowsWhereItLooked) {
  const CommandResult picture =
      run_command({"translate", "--model", model(), "a b c", "--show-alignment"});
  ASSERT_EQ(picture.exit_code, 0) << picture.err;
  const auto lines = lines_of(picture.out);
  ASSERT_GE(lines.size(), 6U);
  EXPECT_EQ(lines[0], "c b a");
  EXPECT_THAT(lines[2], testing::ContainsRegex("a +b +c"));
  for (int row = 0; row < 3; ++row) {
    EXPECT_EQ(lines[static_cast<std::size_t>(3 + row)].front(), "cba"[row]);
  }
  const CommandResult json =
      run_command({"translate", "--model", model(), "a b", "--show-alignment", "--json"});
  const auto translation = nlohmann::json::parse(json.out);
  EXPECT_EQ(translation.at("text"), "b a");
  ASSERT_EQ(translation.at("alignment").size(), 1U);
  ASSERT_EQ(translation.at("alignment")[0].size(), 2U);
  for (const auto& row : translation.at("alignment")[0]) {
    ASSERT_EQ(row.size(), 2U);
    EXPECT_NEAR(row[0].get<double>() + row[1].get<double>(), 1, 1e-5);
  }
}

TEST_F(TrainedTranslator, DrawsWhereItLooked) {
  const testing_support::TemporaryFolder folder;
  const std::string picture = folder / "alignment.svg";
  const CommandResult drawn =
      run_command({"translate", "--model", model(), "a b c", "--out", picture});
  ASSERT_EQ(drawn.exit_code, 0) << drawn.err;
  EXPECT_EQ(drawn.out, "c b a\n");
  EXPECT_THAT(read_text(picture), HasSubstr("<title>a b c → "));
  const std::string page = folder / "alignment.html";
  ASSERT_EQ(run_command({"translate", "--model", model(), "a b c", "--out", page}).exit_code, 0);
  EXPECT_THAT(read_text(page),
              AllOf(HasSubstr("attention explorer"), HasSubstr(R"("keys":["a","b","c"])")));
  expect_error(2, {"translate", "--model", model(), "a", "--out", folder / "a.gif"},
               "does not end in .png, .svg, .pdf, .json or .html");
  expect_error(2, {"translate", "--model", model(), "--out", picture}, "--out draws one SENTENCE");
}

TEST_F(TrainedTranslator, EvaluatesWhatTrainingMeasured) {
  const auto test = evaluated({});
  EXPECT_EQ(test.at("examples"), "test");
  EXPECT_EQ(test.at("count"), 60);
  std::int64_t count = 0;
  for (const auto& group : test.at("by_length")) count += group.at("count").get<std::int64_t>();
  EXPECT_EQ(count, 60);
  char line[64];
  std::snprintf(line, sizeof line, "test   BLEU %.2f, exact match %.1f %%",
                test.at("bleu").get<double>(), 100 * test.at("exact_match").get<double>());
  EXPECT_THAT(trained.out, HasSubstr(line));
  nlohmann::json best;
  for (const auto& epoch : epochs_of(log())) {
    if (epoch.at("is_best")) best = epoch;
  }
  const auto validation = evaluated({"--split", "validation"});
  EXPECT_EQ(validation.at("bleu"), best.at("bleu"));
  EXPECT_EQ(validation.at("exact_match"), best.at("exact_match"));
  EXPECT_GT(evaluated({"--beam", "3"}).at("exact_match").get<double>(), 0.9);
}

TEST_F(TrainedTranslator, EvaluatesOtherFiles) {
  write("source", "a b c\nd e\nf g h\nx\n");
  write("target", "c b a\ne d\nh g f\nwrong\n");
  const auto result = evaluated({"--parallel-text", path("source"), path("target")});
  EXPECT_EQ(result.at("count"), 4);
  EXPECT_EQ(result.at("exact_match"), 0.75);
  const CommandResult text = run_command(
      {"evaluate", "--model", model(), "--parallel-text", path("source"), path("target")});
  EXPECT_THAT(text.out, AllOf(HasSubstr("exact     75.0 %"),
                              HasSubstr("\n            3         2  100.00  100.0 %\n")));
  expect_error(2,
               {"evaluate", "--model", model(), "--split", "test", "--parallel-text",
                path("source"), path("target")},
               "--split is for what the model was trained on");
}

TEST_F(TrainedTranslator, RefusesWhatDoesNotBelongTogether) {
  std::filesystem::copy(model(), path("m"));
  const std::string vocabulary = path("m/source_vocabulary.json");
  tasks::Vocabulary(Arguments{"a b"}, tasks::Units::kWords).save(vocabulary);
  expect_error(1, {"translate", "--model", path("m"), "a"},
               "is not the vocabulary that the model was trained with");
  write("m/source_vocabulary.json", "[]");
  expect_error(1, {"translate", "--model", path("m"), "a"}, "source_vocabulary.json");
  std::filesystem::copy_file(model() + "/source_vocabulary.json", vocabulary,
                             std::filesystem::copy_options::overwrite_existing);
  ASSERT_EQ(run_command(tiny({"--save", path("other")})).exit_code, 0);
  std::filesystem::copy_file(path("other/model.safetensors"), path("m/model.safetensors"),
                             std::filesystem::copy_options::overwrite_existing);
  expect_error(1, {"evaluate", "--model", path("m")}, "model.safetensors");
  std::filesystem::copy_file(path("other/settings.json"), path("m/settings.json"),
                             std::filesystem::copy_options::overwrite_existing);
  expect_error(1, {"evaluate", "--model", path("m")}, "is not the vocabulary");
  expect_error(1, {"train", "translate", "--resume", path("m")}, "is not the vocabulary");
  write("m/settings.json", R"({"task":"translate","training":{}})");
  expect_error(1, {"evaluate", "--model", path("m")}, "does not hold the settings");
  expect_error(1, {"generate", "--model", model()}, "is of `heed train translate`");
}

TEST_F(Translate, LearnsFromYourFiles) {
  std::string source;
  std::string target;
  for (int i = 0; i < 30; ++i) {
    source += "le nombre " + std::to_string(i) + '\n';
    target += "the number " + std::to_string(i) + '\n';
  }
  write("fr", source);
  write("en", target);
  const Arguments small{"--d-model",       "4",        "--epochs", "2",
                        "--parallel-text", path("fr"), path("en")};
  Arguments arguments{"train", "translate", "--save", path("run"), "--attention", "dot"};
  arguments.insert(arguments.end(), small.begin(), small.end());
  const CommandResult result = run_command(arguments);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("parallel text: 24 examples to learn from"));
  const Arguments resume{"train", "translate", "--resume", path("run"), "--parallel-text"};
  const auto resumed_with = [&](const std::string& a, const std::string& b) {
    Arguments with = resume;
    with.insert(with.end(), {a, b});
    return with;
  };
  EXPECT_EQ(run_command(resumed_with(path("fr"), path("en"))).exit_code, 0);
  expect_error(1, resumed_with(path("en"), path("fr")), "are not the files that the model was");
  expect_error(1, {"train", "translate", "--resume", path("run")},
               "give them with --parallel-text");
  expect_error(1, {"evaluate", "--model", path("run")}, "give them with --parallel-text");
  const CommandResult test =
      run_command({"evaluate", "--model", path("run"), "--parallel-text", path("fr"), path("en")});
  EXPECT_THAT(test.out, HasSubstr("examples  test: 3\n"));
}

TEST_F(Translate, RefusesBadCorpora) {
  write("good", "a\nb\nc\nd\n");
  write("short", "a\nb\nc\n");
  write("binary", std::string("a\nb\0\nc\nd\n", 9));
  write("latin", "a\nb\xE9\nc\nd\n");
  write("gap", "a\n\nc\nd\n");
  const auto with = [&](const std::string& target) {
    return Arguments{"train",           "translate",  "--save",    path("run"),
                     "--parallel-text", path("good"), path(target)};
  };
  expect_error(1, with("short"), "short: at byte 6: line 4 is missing");
  expect_error(1, with("binary"), "line 2 has a control character");
  expect_error(1, with("latin"), "line 2 is not valid UTF-8");
  expect_error(1, with("gap"), "line 2 is empty, but not in");
  expect_error(1, with("none"), "No such file");
  EXPECT_FALSE(std::filesystem::exists(path("run/settings.json")));
}

TEST_F(Translate, MistakesAreUsageErrors) {
  const auto wrong = [&](const Arguments& more, const std::string& text) {
    Arguments arguments{"train", "translate"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    expect_error(2, arguments, text);
  };
  wrong({"--task", "poems"}, "--task");
  wrong({"--attention", "some"},
        "'some' is none of none, additive, dot, general, concat, multihead");
  wrong({"--epochs", "0"}, "--epochs is 0, expected 1 to");
  wrong({"--d-model", "7"}, "--d-model is 7, expected an even number");
  wrong({"--attention", "multihead", "--heads", "3"}, "a multiple of --heads, 3");
  wrong({"--dropout", "1"}, "--dropout is 1, expected 0 to less than 1");
  wrong({"--task", "dates", "--from", "de"}, "--from is not for --task dates");
  wrong({"--max-length", "4"}, "--max-length is not for --task number-words");
  wrong({"--threads", "0"}, "--threads");
  wrong({"--resume", path("a"), "--save", path("b")}, "--resume");
  wrong({"--resume", path("a"), "--epochs", "3"}, "--resume");
  wrong({"--parallel-text", path("a")}, "--parallel-text");
  write("a", "x\n");
  wrong({"--parallel-text", path("a"), path("a"), "--task", "copy"}, "does not go with");
  expect_error(1, {"train", "translate", "--resume", path("none")}, "has no checkpoint");
  expect_error(1, {"train", "translate", "--task", "copy", "--max-length", "1"},
               "only 26 are different");
  expect_error(2, {"translate"}, "--model is required");
  expect_error(2, {"translate", "--model", path("m"), "a", "--beam", "0"}, "--beam");
  expect_error(1, {"translate", "--model", path("none"), "a"}, "No such file");
  expect_error(2, {"compare"}, "--out is required");
}

TEST_F(Translate, ModelsWithoutAttentionHaveNoAlignment) {
  ASSERT_EQ(run_command(tiny({"--attention", "none", "--save", path("m")})).exit_code, 0);
  expect_error(1, {"translate", "--model", path("m"), "a", "--show-alignment"},
               "the model has no attention");
  expect_error(2, {"translate", "--model", path("m"), "a", "--head", "1"},
               "--head is only for --show-alignment and --out");
  expect_error(1, {"translate", "--model", path("m"), "a", "--out", path("a.png")},
               "the model has no attention");
  const CommandResult bytes = run_command({"translate", "--model", path("m"), "\xFF"});
  EXPECT_EQ(bytes.exit_code, 1);
  EXPECT_THAT(bytes.err, HasSubstr("not valid UTF-8"));
}

TEST_F(Translate, ComparesAttentionsAndReports) {
  const Arguments arguments{"compare",
                            "--task",
                            "copy",
                            "--max-length",
                            "3",
                            "--examples",
                            "40",
                            "--held-out",
                            "8",
                            "--d-model",
                            "16",
                            "--epochs",
                            "2",
                            "--heads",
                            "2",
                            "--sentences",
                            "2",
                            "--attention",
                            "none,additive,multihead",
                            "--out",
                            path("report")};
  const CommandResult result = run_command(arguments);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("# Attentions compared: copy up to 3 symbols"),
                                HasSubstr("| source length | examples | none | additive |")));
  const auto report = nlohmann::json::parse(read_text(path("report/report.json")));
  ASSERT_EQ(report.at("models").size(), 3U);
  const double target = report.at("models")[0].at("parameters");
  for (const auto& model : report.at("models")) {
    EXPECT_EQ(model.at("epochs").size(), 2U);
    EXPECT_NEAR(model.at("parameters").get<double>(), target, 0.15 * target) << model;
    EXPECT_GT(model.at("tokens_per_second").get<double>(), 0);
  }
  EXPECT_EQ(lines_of(read_text(path("report/table.csv"))).size(), 4U);
  EXPECT_EQ(lines_of(read_text(path("report/learning_curves.csv"))).size(), 7U);
  EXPECT_GE(lines_of(read_text(path("report/bleu_by_length.csv"))).size(), 4U);
  for (const char* figure : {"report/learning_curves.svg", "report/bleu_by_length.svg"}) {
    EXPECT_THAT(read_text(path(figure)), HasSubstr("<svg")) << figure;
  }
  const auto alignments = nlohmann::json::parse(read_text(path("report/alignments.json")));
  const auto& models = alignments.at("models");
  ASSERT_EQ(models.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(models[i].at("sentences").size(), 2U);
    EXPECT_EQ(models[i].at("sentences")[0].at("source"), models[0].at("sentences")[0].at("source"));
  }
  EXPECT_TRUE(models[0].at("sentences")[1].at("weights").empty());
  const CommandResult evaluated =
      run_command({"evaluate", "--model", path("report/additive"), "--json"});
  EXPECT_EQ(nlohmann::json::parse(evaluated.out).at("bleu"),
            report.at("models")[1].at("test").at("bleu"));
  EXPECT_THAT(read_text(path("report/report.html")),
              AllOf(HasSubstr("Attentions compared"), HasSubstr("<caption>BLEU against length")));
  expect_error(1, arguments, "holds 'report.json' already");
}

TEST_F(Translate, ComparesForAPictureAlone) {
  const auto compared = [&](const std::string& file) {
    return run_command({"compare", "--task", "copy", "--max-length", "3", "--examples", "20",
                        "--held-out", "4", "--d-model", "8", "--epochs", "1", "--heads", "2",
                        "--attention", "none", "--out", path(file)});
  };
  ASSERT_EQ(compared("c.html").exit_code, 0);
  EXPECT_THAT(read_text(path("c.html")), HasSubstr("<caption>BLEU while learning"));
  ASSERT_EQ(compared("c.json").exit_code, 0);
  EXPECT_EQ(nlohmann::json::parse(read_text(path("c.json"))).at("models").size(), 1U);
  EXPECT_FALSE(std::filesystem::exists(path("none")));
}

}  // namespace
}  // namespace heed
