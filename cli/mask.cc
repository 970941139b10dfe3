// heed mask: shows which query sees which key under a mask, and the number of visible pairs.
#include "heed/attention/mask.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "arguments.h"
#include "heed/core/error.h"
#include "heed/viz/attention_figure.h"
#include "mask_argument.h"
#include "output_files.h"
#include "picture_file.h"
#include "verbs.h"

namespace heed::cli {

namespace {

constexpr std::int64_t kMaxMaskLength = 65536;  // counting the pairs of any mask takes seconds
constexpr std::int64_t kMaxDrawnMask = 256;     // in a picture and in JSON
constexpr std::int64_t kMaxPrintedMask = 64;    // fits in 80 columns

struct MaskArguments {
  std::string text;
  std::int64_t seq = 16;
  std::optional<std::int64_t> q_len;
  std::optional<std::int64_t> kv_len;
  std::string out;
  PictureArguments picture;
  bool as_json = false;

  ScoreShape shape() const {
    return {.q_len = q_len.value_or(seq), .kv_len = kv_len.value_or(seq)};
  }
};

// The number of visible (query, key) pairs, and of all pairs.
struct PairCount {
  std::int64_t visible = 0;
  std::int64_t all = 1;

  double share() const { return static_cast<double>(visible) / static_cast<double>(all); }
};

struct MaskSummary {
  Mask mask;
  ScoreShape shape;
  PairCount pairs;
  // The pairs whose key does not follow the query, with the last of both aligned.
  PairCount causal_pairs;

  std::int64_t longer_side() const { return std::max(shape.q_len, shape.kv_len); }
};

void check_length(const std::string& option, std::int64_t length) {
  if (length >= 1 && length <= kMaxMaskLength) return;
  throw UsageError(fmt::format("{} is {}, expected 1 to {}", option, length, kMaxMaskLength));
}

MaskSummary summarize(const MaskArguments& arguments) {
  const Mask mask = parse_mask("MASK", arguments.text);
  const ScoreShape shape = arguments.shape();
  const Mask causal = causal_bottom_right();
  try {
    const std::int64_t all = shape.q_len * shape.kv_len;
    const PairCount pairs{count_visible(mask, shape), all};
    return {
        mask, shape, pairs, {count_visible(mask & causal, shape), count_visible(causal, shape)}};
  } catch (const InvalidArgument& error) {
    throw UsageError(fmt::format("MASK does not fit {} queries and {} keys: {}", shape.q_len,
                                 shape.kv_len, error.what()));
  }
}

Figure draw(const MaskSummary& summary, Theme theme) {
  const Tensor<bool> visible = materialize_allow(summary.mask, summary.shape);
  return mask_figure(visible.view().select(0, 0),
                     {.title = summary.mask.description(),
                      .note = fmt::format("{} of {} pairs visible, {:.1f} %", summary.pairs.visible,
                                          summary.pairs.all, 100 * summary.pairs.share()),
                      .visible_mark = "",
                      .masked_mark = "",
                      .theme = theme});
}

std::string to_text(const MaskSummary& summary) {
  const auto line = [](const char* name, const PairCount& count) {
    return fmt::format("{:<14} {} of {}, {:.1f} %\n", name, count.visible, count.all,
                       100 * count.share());
  };
  std::string text = fmt::format("{}\n{:<14} {}\n{:<14} {}\n", summary.mask.description(),
                                 "queries", summary.shape.q_len, "keys", summary.shape.kv_len) +
                     line("visible pairs", summary.pairs) +
                     line("causal pairs", summary.causal_pairs);
  if (summary.longer_side() > kMaxPrintedMask) return text;
  text += '\n';
  for (const std::string& row : to_lines(summary.mask, summary.shape)) text += row + '\n';
  return text;
}

nlohmann::json json_of(const MaskSummary& summary) {
  const auto count = [](const PairCount& pairs) {
    return nlohmann::json{{"visible", pairs.visible}, {"all", pairs.all}, {"share", pairs.share()}};
  };
  nlohmann::json json{{"mask", summary.mask.description()},
                      {"q_len", summary.shape.q_len},
                      {"kv_len", summary.shape.kv_len},
                      {"pairs", count(summary.pairs)},
                      {"causal_pairs", count(summary.causal_pairs)}};
  if (summary.longer_side() <= kMaxDrawnMask) {
    json["lines"] = to_lines(summary.mask, summary.shape);
  }
  return json;
}

void check_lengths(const MaskArguments& arguments) {
  check_length("--seq", arguments.seq);
  if (arguments.q_len) check_length("--q-len", *arguments.q_len);
  if (arguments.kv_len) check_length("--kv-len", *arguments.kv_len);
  const ScoreShape shape = arguments.shape();
  if (!arguments.out.empty() && std::max(shape.q_len, shape.kv_len) > kMaxDrawnMask) {
    throw UsageError(
        fmt::format("--out: {} queries and {} keys are too many for a picture, "
                    "expected at most {} of each",
                    shape.q_len, shape.kv_len, kMaxDrawnMask));
  }
}

void show_mask(const MaskArguments& arguments) {
  constexpr const char* kOut = "--out";
  check_lengths(arguments);
  MaskSummary summary;
  const Picture picture{.figure = [&] { return draw(summary, arguments.picture.theme()); }};
  OutputFiles files;
  if (!arguments.out.empty()) check_picture(kOut, arguments.out, picture);
  summary = summarize(arguments);
  if (!arguments.out.empty()) {
    files.reserve(kOut, arguments.out);
    write_picture(files, kOut, arguments.out, picture);
    files.commit();
  }
  std::cout << (arguments.as_json ? json_of(summary).dump(2, ' ', true) + '\n' : to_text(summary));
}

}  // namespace

void add_mask(CLI::App& command) {
  CLI::App* verb = command.add_subcommand("mask", "Show which query sees which key under a mask");
  auto arguments = std::make_shared<MaskArguments>();
  add_option(*verb, "MASK", arguments->text,
             "The mask: one of those below, or several joined by & and |")
      ->required();
  add_option(*verb, "--seq", arguments->seq,
             fmt::format("How many queries and keys: 1 to {}", kMaxMaskLength))
      ->capture_default_str();
  add_option(*verb, "--q-len", arguments->q_len, "How many queries, where not as many as --seq");
  add_option(*verb, "--kv-len", arguments->kv_len, "How many keys, where not as many as --seq");
  add_option(*verb, "--out", arguments->out,
             fmt::format("Also draw it, up to {} queries and keys, to a file that ends in .png, "
                         ".svg, .pdf or .html",
                         kMaxDrawnMask))
      ->type_name("FILE");
  add_flag(*verb, "--dark", arguments->picture.is_dark, "Draw the picture on a dark ground");
  add_flag(*verb, "--json", arguments->as_json, "Print one JSON object instead");
  verb->footer(
      "Masks, and which keys a query sees:\n" + mask_table() +
      "\n"
      "Those that depend on positions take one more argument where there are more keys than\n"
      "queries: what stands at the same position, top_left (the first query and the first\n"
      "key), bottom_right (the last ones) or offset(N), query 0 at key N.\n\n"
      "Example:\n"
      "  heed mask \"longformer(4, 2)\" --seq 32 --out longformer.svg\n"
      "  heed mask \"sliding_window(3, 0, bottom_right)\" --q-len 4 --kv-len 12");
  verb->callback([arguments] { show_mask(*arguments); });
}

}  // namespace heed::cli
