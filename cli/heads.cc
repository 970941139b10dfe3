// heed heads: what each head of a trained model does, and what changes without it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "heads/head_report.h"
#include "heed/inspect/ablation.h"
#include "heed/inspect/model_heads.h"
#include "heed/models/model.h"
#include "heed/tasks/shipped_text.h"
#include "input_text.h"
#include "models/trained_model.h"
#include "output_files.h"
#include "picture_file.h"
#include "train/progress.h"
#include "verbs.h"

namespace heed::cli {

namespace {

constexpr std::string_view kWhiteSpace = " \t\r\n";

std::string_view without_margins(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(kWhiteSpace), text.size());
  const std::size_t end = text.find_last_not_of(kWhiteSpace);
  return end == std::string_view::npos ? std::string_view() : text.substr(begin, end + 1 - begin);
}

// Removes the first paragraph from `text` and returns it. Each character is read once.
std::string_view take_paragraph(std::string_view& text) {
  std::size_t end = text.size();
  std::size_t margin = 0;
  for (std::size_t lf = text.find('\n'); lf != std::string_view::npos;
       lf = text.find('\n', lf + 1)) {
    const bool is_crlf = lf > 0 && text[lf - 1] == '\r' && text.substr(lf).starts_with("\n\r\n");
    if (!is_crlf && !text.substr(lf).starts_with("\n\n")) continue;
    end = is_crlf ? lf - 1 : lf;
    margin = is_crlf ? 4 : 2;
    break;
  }
  const std::string_view paragraph = text.substr(0, end);
  text.remove_prefix(end + margin);
  return without_margins(paragraph);
}

}  // namespace

std::vector<std::string> text_pieces(std::string_view text, std::int64_t bytes,
                                     std::int64_t count) {
  std::vector<std::string> pieces;
  bool is_full = true;  // of the last piece
  while (!text.empty()) {
    const std::string_view paragraph = take_paragraph(text);
    if (paragraph.empty()) continue;
    if (is_full && static_cast<std::int64_t>(pieces.size()) == count) break;
    if (is_full) {
      pieces.emplace_back(paragraph);
    } else {
      pieces.back() += "\n\n";
      pieces.back() += paragraph;
    }
    is_full = static_cast<std::int64_t>(pieces.back().size()) >= bytes;
  }
  return pieces;
}

namespace {

constexpr const char* kHeadsOut = "--out";
constexpr std::int64_t kPieceBytes = 800;  // some 200 tokens of English
constexpr std::int64_t kMaxPieceTokens = 512;
constexpr std::int64_t kMaxPieces = 1000;
constexpr std::int64_t kMaxDraws = 100;
constexpr std::int64_t kMaxRepeatedTokens = 1'000'000;

struct HeadsArguments {
  std::string model;
  std::string text_file;
  bool is_pair = false;
  std::int64_t pieces = 8;
  inspect::RepeatedTokens repeated;
  std::string ablate;
  std::int64_t draws = 5;
  bool as_json = false;
  std::string out;
  bool is_dark = false;
};

Picture known_head_pictures() {
  return {.figure = [] { return Figure(); }, .json = [] { return std::string(); }};
}

void check_count(const std::string& option, std::int64_t count, std::int64_t least,
                 std::int64_t most) {
  if (count >= least && count <= most) return;
  throw UsageError(fmt::format("{} is {}, expected {} to {}", option, count, least, most));
}

// The names that --ablate accepts.
std::vector<std::string> role_names() {
  std::vector<std::string> names;
  for (const inspect::TokenPattern& pattern : inspect::text_patterns()) {
    names.push_back(pattern.name);
  }
  names.insert(names.end(), {inspect::induction().name, "positional", "constant offset", "broad"});
  return names;
}

bool is_list_of_heads(const std::string& text) {
  return text.front() >= '0' && text.front() <= '9';
}

// Parses "layer.head", for example "5.3". Throws UsageError.
models::HeadIndex parse_head(const std::string& text) {
  models::HeadIndex head;
  const char* const end = text.data() + text.size();
  const auto layer = std::from_chars(text.data(), end, head.layer);
  if (layer.ec == std::errc() && layer.ptr != end && *layer.ptr == '.') {
    const auto rest = std::from_chars(layer.ptr + 1, end, head.head);
    if (rest.ec == std::errc() && rest.ptr == end && head.layer >= 0 && head.head >= 0) return head;
  }
  throw UsageError(fmt::format("--ablate: '{}' is no head, expected LAYER.HEAD such as 5.3", text));
}

std::vector<models::HeadIndex> parse_heads(const std::string& text) {
  std::vector<models::HeadIndex> heads;
  for (const std::string& part : detail::split_list(text)) heads.push_back(parse_head(part));
  return heads;
}

void check_usage(const HeadsArguments& arguments) {
  if (!arguments.out.empty()) check_picture(kHeadsOut, arguments.out, known_head_pictures());
  check_count("--pieces", arguments.pieces, arguments.is_pair ? 2 : 1, kMaxPieces);
  check_count("--draws", arguments.draws, 0, kMaxDraws);
  check_count("--random", arguments.repeated.length, 1, kMaxRepeatedTokens);
  check_count("--repeats", arguments.repeated.repeats, 2, kMaxRepeatedTokens);
  if (arguments.ablate.empty()) return;
  if (is_list_of_heads(arguments.ablate)) {
    parse_heads(arguments.ablate);
    return;
  }
  const std::vector<std::string> names = role_names();
  if (std::find(names.begin(), names.end(), arguments.ablate) != names.end()) return;
  throw UsageError(
      fmt::format("--ablate: '{}' is neither a list of heads such as 5.3,7.1 nor one of: {}",
                  arguments.ablate, fmt::join(names, ", ")));
}

std::vector<inspect::ModelText> read_pieces(const models::Model& model,
                                            const std::vector<std::string>& pieces, bool is_pair) {
  std::vector<inspect::ModelText> texts;
  if (!is_pair) {
    for (const std::string& piece : pieces) {
      texts.push_back(inspect::read_text(model, piece, kMaxPieceTokens));
    }
    return texts;
  }
  for (std::size_t i = 0; i + 1 < pieces.size(); i += 2) {
    texts.push_back(inspect::read_pair(model, pieces[i], pieces[i + 1], kMaxPieceTokens));
  }
  return texts;
}

std::vector<std::string> pieces_of(const HeadsArguments& arguments) {
  const std::string file =
      arguments.text_file.empty() ? std::string() : read_input(arguments.text_file);
  std::vector<std::string> pieces =
      text_pieces(arguments.text_file.empty() ? tasks::shipped_text() : std::string_view(file),
                  arguments.is_pair ? kPieceBytes / 2 : kPieceBytes, arguments.pieces);
  const std::size_t least = arguments.is_pair ? 2 : 1;
  if (pieces.size() < least) {
    throw std::runtime_error(fmt::format("'{}' has {} paragraphs, expected {} at least",
                                         arguments.text_file, pieces.size(), least));
  }
  return pieces;
}

// Prints progress once an operation has taken two seconds.
class LateProgress {
 public:
  explicit LateProgress(std::string unit) : unit_(std::move(unit)) {}
  void report(std::int64_t done, std::int64_t total) {
    if (!progress_) progress_.emplace(static_cast<std::size_t>(total), unit_);
    progress_->report(static_cast<std::size_t>(done));
  }

 private:
  std::string unit_;
  std::optional<WritingProgress> progress_;
};

// Throws UsageError where --ablate names a head that the model lacks.
void check_heads(const HeadsArguments& arguments, const models::ModelConfig& config) {
  if (arguments.ablate.empty() || !is_list_of_heads(arguments.ablate)) return;
  for (const models::HeadIndex& head : parse_heads(arguments.ablate)) {
    if (head.layer < config.num_layers && head.head < config.num_heads) continue;
    throw UsageError(fmt::format("--ablate: there is no head {}.{}, the model has 0.0 to {}.{}",
                                 head.layer, head.head, config.num_layers - 1,
                                 config.num_heads - 1));
  }
}

inspect::HeadScores score(const models::Model& model, const HeadsArguments& arguments,
                          const std::vector<std::string>& pieces) {
  LateProgress progress("layers of texts read");
  inspect::HeadScoresOptions options;
  options.repeated = arguments.repeated;
  options.progress = [&](std::int64_t done, std::int64_t total) { progress.report(done, total); };
  return inspect::score_heads(model, read_pieces(model, pieces, arguments.is_pair), options);
}

std::vector<models::HeadIndex> heads_to_ablate(const std::string& text,
                                               const std::vector<inspect::HeadRole>& roles) {
  if (is_list_of_heads(text)) return parse_heads(text);
  std::vector<models::HeadIndex> heads;
  for (const inspect::HeadRole& role : roles) {
    if (role.name == text) heads.push_back(role.head);
  }
  return heads;
}

void ablate(const models::Model& model, const HeadsArguments& arguments, HeadReport& report) {
  if (arguments.ablate.empty()) return;
  report.ablated = arguments.ablate;
  std::vector<models::HeadIndex> heads = heads_to_ablate(arguments.ablate, report.roles);
  if (heads.empty()) return;
  LateProgress progress("runs without heads");
  inspect::AblationOptions options{.draws = arguments.draws, .seed = arguments.repeated.seed};
  options.progress = [&](std::int64_t done, std::int64_t total) { progress.report(done, total); };
  report.ablation = inspect::ablate_heads(model, report.scores, std::move(heads), options);
}

std::string dump_heads(const HeadReport& report) {
  return to_json(report).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + '\n';
}

void run_heads(const HeadsArguments& arguments) {
  check_usage(arguments);
  OutputFiles files;
  if (!arguments.out.empty()) files.reserve(kHeadsOut, arguments.out);
  const std::vector<std::string> pieces = pieces_of(arguments);
  const models::Model model = load_reader(arguments.model);
  check_heads(arguments, model.config());
  HeadReport report;
  report.model = arguments.model;
  report.config = model.config();
  report.texts =
      fmt::format("{} {} of {}", arguments.is_pair ? pieces.size() / 2 : pieces.size(),
                  arguments.is_pair ? "pairs" : "pieces",
                  arguments.text_file.empty() ? "the text that heed brings" : arguments.text_file);
  report.scores = score(model, arguments, pieces);
  report.roles = inspect::head_roles(report.scores);
  ablate(model, arguments, report);
  if (!arguments.out.empty()) {
    write_picture(
        files, kHeadsOut, arguments.out,
        {.figure =
             [&] { return figure_of(report, arguments.is_dark ? Theme::kDark : Theme::kLight); },
         .json = [&] { return dump_heads(report); }});
    files.commit();
  }
  std::cout << (arguments.as_json ? dump_heads(report) : text_of(report));
}

void add_heads_options(CLI::App& verb, HeadsArguments& arguments) {
  add_option(verb, "--model", arguments.model, "A folder as transformers saves it, or a GGUF file")
      ->type_name("PATH")
      ->required();
  add_option(
      verb, "--text", arguments.text_file,
      "What it reads, in paragraphs (-: standard input); without it a story that heed brings")
      ->type_name("FILE");
  add_option(verb, "--pieces", arguments.pieces,
             "How many pieces of the text, of some 200 tokens each: 1 to 1000")
      ->capture_default_str();
  add_flag(verb, "--pair", arguments.is_pair,
           "Read two pieces at a time as a pair, for models that compare texts");
  add_option(verb, "--random", arguments.repeated.length,
             "How many random tokens a sequence has before it repeats")
      ->capture_default_str();
  add_option(verb, "--repeats", arguments.repeated.repeats, "How often it stands there")
      ->capture_default_str();
  add_option(verb, "--seed", arguments.repeated.seed, "Draws random tokens and random heads")
      ->capture_default_str();
  add_option(verb, "--ablate", arguments.ablate,
             "Switch heads off and measure what changes: a list such as 5.3,7.1, or all heads of a "
             "name, such as induction")
      ->type_name("HEADS");
  add_option(verb, "--draws", arguments.draws,
             "Beside as many random other heads, drawn so often: 0 to 100")
      ->capture_default_str();
}

}  // namespace

void add_heads(CLI::App& command) {
  CLI::App* verb = command.add_subcommand(
      "heads", "Tell what each head of a trained model does, and whether that matters");
  const auto arguments = std::make_shared<HeadsArguments>();
  add_heads_options(*verb, *arguments);
  add_flag(*verb, "--json", arguments->as_json, "Print every score as one JSON object");
  add_option(
      *verb, kHeadsOut, arguments->out,
      "Also draw a map of layers and heads for each pattern; its ending chooses the format: " +
          picture_endings(known_head_pictures()))
      ->type_name("FILE");
  add_flag(*verb, "--dark", arguments->is_dark, "Draw on a dark ground");
  verb->footer(
      "A score is the share of a head's attention that goes to the keys of a pattern, over\n"
      "the tokens that see such a key and another one; chance is what a head would score\n"
      "that looks at all keys alike. A name says where a head looks, not what for: see\n"
      "--ablate. Example:\n"
      "  heed heads --model SmolLM2-135M.gguf --ablate induction --out heads.svg");
  verb->callback([arguments] { run_heads(*arguments); });
}

}  // namespace heed::cli
