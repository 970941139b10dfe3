// Masks read from text, in the form of their descriptions.
#include "heed/attention/mask_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "attention/masks/mask_reader.h"
#include "core/closest_name.h"
#include "heed/core/error.h"

namespace heed { inline namespace v0 {

namespace {

using detail::MaskArguments;
using detail::MaskReader;

// Limits, as a text may come from an untrusted source.
constexpr std::size_t kMostText = std::size_t{1} << 20;
constexpr int kMostMasks = 1000;
constexpr int kDeepest = 64;

Mask causal_of(MaskArguments& given) { return causal(given.alignment()); }

template <Mask (*make)(std::int64_t, Alignment)>
Mask of_one(MaskArguments& given) {
  const std::int64_t number = given.number("a number");
  return make(number, given.alignment());
}

template <Mask (*make)(std::int64_t, std::int64_t, Alignment)>
Mask of_two(MaskArguments& given) {
  const std::int64_t first = given.number("two numbers");
  const std::int64_t second = given.number("a second number");
  return make(first, second, given.alignment());
}

Mask sliding_window_of(MaskArguments& given) {
  const std::int64_t left = given.side("LEFT, a number or 'unbounded'");
  const std::int64_t right = given.side("RIGHT, a number or 'unbounded'");
  return sliding_window(left, right, given.alignment());
}

Mask block_window_of(MaskArguments& given) {
  const std::int64_t left = given.side("LEFT, a number of blocks or 'unbounded'");
  const std::int64_t right = given.side("RIGHT, a number of blocks or 'unbounded'");
  const std::int64_t block = given.number("BLOCK, positions in a block");
  return block_window(left, right, block, given.alignment());
}

Mask random_blocks_of(MaskArguments& given) {
  RandomBlocks drawn;
  drawn.count = given.number("COUNT, a number of blocks");
  drawn.block = given.number("BLOCK, positions in a block");
  drawn.seed = given.seed();
  drawn.only_past = given.takes("past");
  return random_blocks(drawn, given.alignment());
}

Mask bigbird_of(MaskArguments& given) {
  BigBird numbers;
  numbers.block = given.number("BLOCK, positions in a block");
  numbers.window = given.number("WINDOW, a number of blocks");
  numbers.global = given.number("GLOBAL, a number of blocks");
  numbers.random = given.number("RANDOM, a number of blocks");
  numbers.seed = given.seed();
  return bigbird(numbers, given.alignment());
}

Mask streaming_of(MaskArguments& given) {
  const std::int64_t sinks = given.number("SINKS, a number of keys");
  const std::int64_t window = given.side("WINDOW, a number of keys");
  return streaming(sinks, window, given.alignment());
}

Mask tree_of(MaskArguments& given) {
  std::vector<std::int64_t> parents = given.numbers();
  return Mask::tree(std::move(parents), given.alignment(Alignment::bottom_right()));
}

Mask columns_of(MaskArguments& given) { return columns(given.number("a number")); }
Mask documents_of(MaskArguments& given) { return documents(given.numbers()); }
Mask key_lengths_of(MaskArguments& given) { return key_lengths(given.numbers()); }
Mask given_rows_of(MaskArguments& given) { return Mask::rows(given.ranges()); }

struct NamedMask {
  std::string_view name;
  Mask (*make)(MaskArguments& given);
  std::string_view arguments;
  std::string_view shows;
};

constexpr NamedMask kNamedMasks[] = {
    {"causal", causal_of, "", "the keys up to the query's own position"},
    {"sliding_window", sliding_window_of, "(LEFT, RIGHT)",
     "so many keys on each side of its own position, or unbounded"},
    {"prefix", of_one<prefix>, "(LENGTH)", "the first keys, and those up to its own position"},
    {"global_tokens", of_one<global_tokens>, "(COUNT)",
     "the first queries see all keys, and all queries the first keys"},
    {"strided", of_one<strided>, "(STRIDE)", "the keys a multiple of STRIDE away"},
    {"columns", columns_of, "(STRIDE)", "the last of each STRIDE keys"},
    {"dilated", of_two<dilated>, "(WINDOW, STEP)",
     "itself, and WINDOW keys on each side that stand STEP apart"},
    {"longformer", of_two<longformer>, "(WINDOW, GLOBAL)",
     "sliding_window(WINDOW, WINDOW) | global_tokens(GLOBAL)"},
    {"sparse_transformer", of_one<sparse_transformer>, "(STRIDE)",
     "causal: the last STRIDE keys, and of those before every STRIDE-th"},
    {"block_window", block_window_of, "(LEFT, RIGHT, BLOCK)",
     "its block of BLOCK positions, and so many on each side"},
    {"random_blocks", random_blocks_of, "(COUNT, BLOCK, SEED[, past])",
     "COUNT blocks of keys drawn at random for each block of queries"},
    {"bigbird", bigbird_of, "(BLOCK, WINDOW, GLOBAL, RANDOM, SEED)",
     "a window, global and random blocks"},
    {"streaming", streaming_of, "(SINKS, WINDOW)", "the first SINKS keys and the last WINDOW"},
    {"tree", tree_of, "(PARENT, ...)", "of the tokens in a tree its own ancestors"},
    {"documents", documents_of, "(0, END, ...)", "the keys of its own document"},
    {"key_lengths", key_lengths_of, "(LENGTH, ...)",
     "the first LENGTH keys of each sequence: the rest is padding"},
    {"rows", given_rows_of, "(BEGIN:END, ...)", "a range of keys for each query"}};

// Names in descriptions that cannot be read back: masks made of tensors, layouts or functions.
constexpr std::string_view kMadeOfMore[] = {"allow", "block", "additive", "blocks", "where"};

class MaskParser {
 public:
  explicit MaskParser(std::string_view text) : reader_(text) {}

  Mask whole() {
    Mask mask = any_of(0);
    if (!reader_.is_at_end()) reader_.refuse_next("'&', '|' or the end of the text");
    return mask;
  }

 private:
  Mask any_of(int depth) {
    Mask mask = all_of(depth);
    while (reader_.take('|')) mask = mask | all_of(depth);
    return mask;
  }

  Mask all_of(int depth) {
    Mask mask = one(depth);
    while (reader_.take('&')) mask = mask & one(depth);
    return mask;
  }

  Mask one(int depth) {
    const std::size_t place = reader_.place();
    if (reader_.take('(')) {
      if (depth == kDeepest) {
        reader_.refuse(place, fmt::format("parentheses are more than {} deep", kDeepest));
      }
      Mask mask = any_of(depth + 1);
      reader_.expect(')', "'&', '|' or ')'");
      return mask;
    }
    const std::string_view name = reader_.take_word();
    if (name.empty()) reader_.refuse_next("a mask");
    if (++count_ > kMostMasks) {
      reader_.refuse(place, fmt::format("more than {} masks", kMostMasks));
    }
    return name == "none" ? Mask() : named(place, name);
  }

  Mask named(std::size_t place, std::string_view name) {
    const auto* found = std::ranges::find(kNamedMasks, name, &NamedMask::name);
    if (found == std::end(kNamedMasks)) refuse_name(place, name);
    MaskArguments given(reader_);
    Mask mask = made(place, *found, given);
    given.end();
    return mask;
  }

  // Errors of the mask's own function are shown with its name below.
  Mask made(std::size_t place, const NamedMask& mask, MaskArguments& given) const {
    try {
      return mask.make(given);
    } catch (const InvalidArgument& error) {
      const std::string_view problem = error.what();
      if (problem.starts_with("parse_mask: ")) throw;
      constexpr std::size_t kMostShown = 300;
      reader_.refuse(place, fmt::format("{}{}", problem.substr(0, kMostShown),
                                        problem.size() > kMostShown ? "..." : ""));
    }
  }

  [[noreturn]] void refuse_name(std::size_t place, std::string_view name) const {
    if (std::ranges::find(kMadeOfMore, name) != std::end(kMadeOfMore)) {
      reader_.refuse(
          place, fmt::format("'{}' is made of a tensor, a layout or a function, which cannot be "
                             "read from text",
                             name));
    }
    std::vector<std::string_view> names{"none"};
    for (const NamedMask& known : kNamedMasks) names.push_back(known.name);
    const std::string_view meant = detail::closest_name(name, names);
    reader_.refuse(place,
                   fmt::format("there is no mask '{}'{}, expected one of {}", name.substr(0, 40),
                               meant.empty() ? "" : fmt::format(" (did you mean '{}'?)", meant),
                               fmt::join(names, ", ")));
  }

  MaskReader reader_;
  int count_ = 0;
};

}  // namespace

std::vector<MaskSyntax> mask_syntax() {
  std::vector<MaskSyntax> all{{"none", "", "every key"}};
  for (const NamedMask& known : kNamedMasks) {
    all.push_back({known.name, known.arguments, known.shows});
  }
  return all;
}

Mask parse_mask(std::string_view text) {
  if (text.size() > kMostText) {
    throw InvalidArgument(fmt::format("parse_mask: the text has {} characters, expected at most {}",
                                      text.size(), kMostText));
  }
  return MaskParser(text).whole();
}

}}  // namespace heed::v0
