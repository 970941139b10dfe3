#include "bench/baseline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "core/printable.h"
#include "io/text_file.h"

namespace heed::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kMostBytes = std::int64_t{64} << 20;

// Members of a case that are measured results. They do not identify the case.
const std::set<std::string> kMeasured{"error"};

// Returns a text, number, boolean or null as text.
std::string word_of(const io::JsonPart& part) {
  switch (part.value().kind) {
    case io::JsonKind::kNull:
      return "-";
    case io::JsonKind::kBoolean:
      return part.boolean() ? "true" : "false";
    case io::JsonKind::kInteger:
      return fmt::format("{}", part.integer());
    case io::JsonKind::kNumber:
      return fmt::format("{}", part.number());
    case io::JsonKind::kString:
      return part.string();
    default:
      part.fail(" is no text and no number");
  }
}

// Returns the members of an object as texts. The object has one level of names.
Facts words_of(const io::JsonPart& part) {
  if (!part.is(io::JsonKind::kObject)) part.fail(" is no object");
  Facts words;
  for (const std::string& key : part.value().keys) {
    if (kMeasured.contains(key)) continue;
    const auto value = part.find(key);
    words[key] = value ? word_of(*value) : "-";
  }
  return words;
}

std::string name_of(const Facts& one) {
  std::string name;
  for (const auto& [key, value] : one) {
    name += fmt::format("{}{}={}", name.empty() ? "" : ", ", key, value);
  }
  return name;
}

// Converts JSON made by this program the same way as JSON read from a file.
Facts words_of(const Json& object) {
  const std::string file = "the report";
  const io::JsonValue value = io::parse_json(object.dump(), file);
  return words_of(io::JsonPart(file, value));
}

// Returns the machine and model of the report, as far as it names them.
Facts facts_of(const io::JsonPart& report) {
  Facts facts;
  if (const auto machine = report.find("machine")) {
    for (auto& [key, value] : words_of(*machine)) {
      if (key != "version") facts[key] = value;
    }
  }
  if (const auto model = report.find("model")) facts["model"] = model->at("name").string();
  return facts;
}

// Returns the thread counts of the cases, "1 and 2"; empty where no case has them.
std::string threads_of(const std::vector<Facts>& cases) {
  std::set<std::string> threads;
  for (const Facts& one : cases) {
    if (const auto found = one.find("threads"); found != one.end()) threads.insert(found->second);
  }
  return fmt::format("{}", fmt::join(threads, " and "));
}

}  // namespace

Baseline::Baseline(std::string file, const std::string& verb, std::string number)
    : file_(std::move(file)), number_(std::move(number)) {
  const std::string text = io::read_whole_file(file_, "a report of heed bench", kMostBytes);
  const io::JsonValue value = io::parse_json(text, file_);
  const io::JsonPart report(file_, value);
  const auto found = report.is(io::JsonKind::kObject) ? report.find("verb") : std::nullopt;
  if (!found || found->string() != verb) {
    report.fail(fmt::format("this is {}, expected what `heed bench {} --json` printed",
                            found
                                ? fmt::format("of `heed bench {}`", io::printable(found->string()))
                                : "no report of heed bench",
                            verb));
  }
  facts_ = facts_of(report);
  read_results(report);
}

void Baseline::read_results(const io::JsonPart& report) {
  for (const io::JsonPart& result : report.at("results").items()) {
    Facts one = words_of(result.at("case"));
    const io::JsonPart part = result.at(number_);
    const double number = part.number();
    if (number < 0) part.fail(fmt::format(" is {}, expected a number of at least 0", number));
    found_[name_of(one)].push_back(number);
    cases_.push_back(std::move(one));
  }
}

std::vector<std::string> Baseline::differences_from(const Json& report) const {
  const std::string file = "the report";
  const io::JsonValue value = io::parse_json(report.dump(), file);
  const io::JsonPart part(file, value);
  const Facts here = facts_of(part);
  std::vector<std::string> differences;
  const auto compare = [&](const std::string& what, const std::string& old_value,
                           const std::string& new_value) {
    if (old_value == new_value) return;
    differences.push_back(fmt::format("{} is {}, in the baseline {}", what,
                                      io::printable(new_value), io::printable(old_value)));
  };
  for (const auto& [key, old_value] : facts_) {
    const auto found = here.find(key);
    compare(io::printable(key), old_value, found == here.end() ? "not said" : found->second);
  }
  std::vector<Facts> cases;
  for (const io::JsonPart& result : part.at("results").items()) {
    cases.push_back(words_of(result.at("case")));
  }
  compare("threads", threads_of(cases_), threads_of(cases));
  return differences;
}

void Baseline::set_beside(Json& report) const {
  std::map<std::string, std::size_t> used;
  auto added = Json::array();
  for (Json& result : report["results"]) {
    const std::string name = name_of(words_of(result["case"]));
    const auto found = found_.find(name);
    if (found == found_.end() || used[name] == found->second.size()) {
      added.push_back(name);
      continue;
    }
    const double old_number = found->second[used[name]++];
    const double number = result[number_];
    result["baseline"] = old_number;
    result["ratio"] = old_number == number ? Json(1.0)
                      : number == 0        ? Json(nullptr)
                                           : Json(old_number / number);
  }
  auto missing = Json::array();
  for (const Facts& one : cases_) {
    const std::string name = name_of(one);
    if (used[name] > 0) {
      --used[name];
    } else {
      missing.push_back(io::printable(name));
    }
  }
  Json machine = Json::object();
  for (const auto& [key, value] : facts_) machine[io::printable(key)] = io::printable(value);
  report["baseline"] = {{"file", file_},      {"number", number_},
                        {"machine", machine}, {"differences", differences_from(report)},
                        {"missing", missing}, {"added", added}};
}

void add_ratios(const Json& report, std::vector<std::vector<std::string>>& rows) {
  if (!report.contains("baseline")) return;
  rows.front().emplace_back("ratio");
  std::size_t row = 0;
  for (const Json& result : report["results"]) {
    const auto ratio = result.find("ratio");
    const bool has_number = ratio != result.end() && !ratio->is_null();
    rows[++row].push_back(has_number ? fmt::format("{:.3f}", ratio->get<double>()) : "-");
  }
}

std::string baseline_notes(const Json& report) {
  if (!report.contains("baseline")) return "";
  const Json& baseline = report["baseline"];
  std::string notes =
      fmt::format("ratio: {} of {} by that of here\n", baseline["number"].get<std::string>(),
                  baseline["file"].get<std::string>());
  const auto say = [&](const char* name, const char* text) {
    for (const Json& line : baseline[name]) {
      notes += fmt::format("! {}{}\n", text, line.get<std::string>());
    }
  };
  say("differences", "");
  say("missing", "only in the baseline: ");
  say("added", "not in the baseline: ");
  return notes;
}

}  // namespace heed::cli
