#include "models/sealed_run.h"

#include <fmt/format.h>

#include <cstddef>
#include <iostream>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "arguments.h"
#include "heed/core/cancellation.h"
#include "heed/core/error.h"
#include "io/text_file.h"
#include "models/sealing.h"
#include "train/interrupt.h"
#include "train/progress.h"
#include "verbs.h"

namespace heed::cli {

namespace {

constexpr const char* kSealFile = "--seal-file";

models::Seal read_seal(const std::string& given, models::SealKind kind) {
  const std::string text = given.starts_with('@') ? io::read_text_file(given.substr(1)) : given;
  models::Seal seal;
  try {
    seal = models::parse_seal(text);
  } catch (const InvalidArgument& error) {
    const std::string_view problem = error.what();
    throw UsageError(
        fmt::format("--verify: this is no seal: {}", problem.substr(problem.find(": ") + 2)));
  }
  if (seal.kind == kind) return seal;
  throw UsageError(fmt::format("--verify: the seal is one of `heed {}`", to_string(seal.kind)));
}

[[noreturn]] void refuse_differences(const std::vector<models::SealDifference>& differences) {
  constexpr std::size_t kMostListed = 10;
  std::string list;
  for (std::size_t i = 0; i < differences.size() && i < kMostListed; ++i) {
    list += fmt::format("{}{}", i == 0 ? "" : "; ", differences[i].text);
  }
  if (differences.size() > kMostListed) {
    list += fmt::format("; and {} more", differences.size() - kMostListed);
  }
  throw std::runtime_error("not reproduced: " + list);
}

std::string success_line(const models::Seal& seal) {
  const std::size_t count = seal.steps.size() / 2;
  return seal.kind == models::SealKind::kGenerate
             ? fmt::format("reproduced: the logits of all {} tokens, and the text", count)
             : fmt::format("reproduced: all {} vectors", count);
}

}  // namespace

void add_seal_options(CLI::App& verb, SealArguments& arguments) {
  add_flag(verb, "--seal", arguments.is_printed,
           "Also print a seal: a line of hashes of the model, the input, the options and every bit "
           "of the result, by which another machine verifies that it computes the same");
  add_option(verb, kSealFile, arguments.file, "Also write the seal into this file")
      ->type_name("FILE");
  add_option(verb, "--verify", arguments.expected,
             "Compare with this seal, or with that in the file behind @: exit code 0 if every bit "
             "is the same, otherwise 1 and what differs, and from which token on")
      ->type_name("SEAL");
}

SealedRun::SealedRun(const SealArguments& arguments, models::SealKind kind)
    : arguments_(arguments),
      is_wanted_(arguments.is_printed || !arguments.file.empty() || !arguments.expected.empty()) {
  if (!arguments.expected.empty()) expected_ = read_seal(arguments.expected, kind);
  if (arguments.file.empty()) return;
  if (arguments.expected.starts_with('@')) {
    files_.protect("--verify", arguments.expected.substr(1));
  }
  files_.reserve(kSealFile, arguments.file);
}

void SealedRun::hash(const models::Model& model) const try {
  if (!is_wanted_) return;
  constexpr std::int64_t kMegabyte = 1'000'000;
  std::optional<WritingProgress> progress;
  model.sha256([&](std::int64_t done, std::int64_t total) {
    if (!progress)
      progress.emplace(static_cast<std::size_t>(total / kMegabyte), "MB of the model hashed");
    progress->report(static_cast<std::size_t>(done / kMegabyte));
  });
} catch (const Cancelled&) {
  throw Interrupted(InterruptGuard::signal(), "interrupted while it hashed the model's files");
}

void SealedRun::check_inputs(const models::Seal& begun) const {
  if (!expected_) return;
  const auto differences = models::input_differences(*expected_, begun);
  if (!differences.empty()) refuse_differences(differences);
}

std::vector<models::SealDifference> SealedRun::differences() const {
  if (!expected_) return {};
  return models::seal_differences(*expected_, seal_);
}

void SealedRun::add_to(nlohmann::json& json) const {
  if (!is_wanted_) return;
  json["seal"] = to_string(seal_);
  if (!expected_) return;
  const auto found = differences();
  json["reproduced"] = found.empty();
  json["differences"] = nlohmann::json::array();
  for (const models::SealDifference& difference : found) {
    nlohmann::json each{{"part", to_string(difference.part)}, {"text", difference.text}};
    if (difference.index >= 0) each["index"] = difference.index;
    json["differences"].push_back(std::move(each));
  }
}

void SealedRun::finish(bool as_json) {
  if (!is_wanted_) return;
  if (!arguments_.file.empty()) {
    files_.write_text(kSealFile, to_string(seal_) + '\n');
    files_.commit();
  }
  if (arguments_.is_printed && !as_json) std::cout << to_string(seal_) << std::endl;
  if (!expected_) return;
  const auto found = differences();
  if (!found.empty()) refuse_differences(found);
  if (!as_json) std::cout << success_line(seal_) << '\n';
}

}  // namespace heed::cli
