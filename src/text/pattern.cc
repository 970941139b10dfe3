#include "text/pattern.h"

#include <string>
#include <utility>

#include "text/code_points.h"
#include "text/pattern_syntax.h"

namespace heed { inline namespace v0 { namespace text {
namespace {

using Step = Pattern::Step;
using StepKind = Step::Kind;

constexpr std::size_t kMostSteps = 4096;

// Turns a pattern's tree into steps.
class Compiler {
 public:
  explicit Compiler(std::vector<Step>& steps) : steps_(steps) {}

  void compile(const PatternNode& node) {
    if (steps_.size() > kMostSteps) throw PatternError("is too large");
    switch (node.kind) {
      case PatternNode::Kind::kCharacter:
        add(StepKind::kCharacter, node.character_class);
        break;
      case PatternNode::Kind::kAhead:
        add(node.is_negated ? StepKind::kNotAhead : StepKind::kAhead, node.character_class);
        break;
      case PatternNode::Kind::kLineEnd:
        add(StepKind::kLineEnd);
        break;
      case PatternNode::Kind::kSequence:
        for (const PatternNode& part : node.parts) compile(part);
        break;
      case PatternNode::Kind::kChoice:
        compile_choice(node.parts);
        break;
      case PatternNode::Kind::kRepeat:
        compile_repeat(node);
        break;
    }
  }

  std::uint32_t add(StepKind kind, std::uint32_t first = 0) {
    const bool has_place = kind == StepKind::kChoice || kind == StepKind::kWhile;
    steps_.push_back({kind, first, 0, has_place ? num_places_++ : 0});
    return static_cast<std::uint32_t>(steps_.size() - 1);
  }
  std::uint32_t num_places() const { return num_places_; }

 private:
  std::uint32_t here() const { return static_cast<std::uint32_t>(steps_.size()); }

  void compile_choice(const std::vector<PatternNode>& parts) {
    std::vector<std::uint32_t> jumps;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const bool is_last = i + 1 == parts.size();
      const std::uint32_t choice = is_last ? 0 : add(StepKind::kChoice, here() + 1);
      compile(parts[i]);
      if (is_last) break;
      jumps.push_back(add(StepKind::kJump));
      steps_[choice].second = here();
    }
    for (const std::uint32_t jump : jumps) steps_[jump].first = here();
  }

  void compile_repeat(const PatternNode& node) {
    const PatternNode& part = node.parts.front();
    for (std::uint32_t i = 0; i < node.least; ++i) compile(part);
    const bool is_endless = node.most == PatternNode::kEndless;
    if (node.is_possessive) {
      add(is_endless ? StepKind::kWhile : StepKind::kIf, part.character_class);
    } else if (is_endless) {
      const std::uint32_t choice = add(StepKind::kChoice, here() + 1);
      compile(part);
      add(StepKind::kJump, choice);
      steps_[choice].second = here();
    } else {
      std::vector<std::uint32_t> choices;
      for (std::uint32_t i = node.least; i < node.most; ++i) {
        choices.push_back(add(StepKind::kChoice, here() + 1));
        compile(part);
      }
      for (const std::uint32_t choice : choices) steps_[choice].second = here();
    }
  }

  std::vector<Step>& steps_;
  std::uint32_t num_places_ = 0;
};

}  // namespace

Pattern::Pattern(std::string_view text) {
  const PatternNode root = parse_pattern(text, classes_);
  if (least_size(root) == 0) throw PatternError("matches the empty text");
  for (CharacterClass& each : classes_) each.seal();
  Compiler compiler(steps_);
  compiler.compile(root);
  compiler.add(StepKind::kMatch);
  num_places_ = compiler.num_places();
}

// The search in one text. A step that was tried at a place of the text, and did not lead to a match
// there, does not lead to one from an earlier place either, so no pair is tried twice. Those that
// led to a match are not tried again because the next match begins behind it, and is not empty.
class Pattern::Matching {
 public:
  Matching(const Pattern& pattern, std::string_view text)
      : pattern_(pattern), text_(text), tried_((text.size() + 1) * pattern.num_places_, false) {}

  // The end of the match that begins at `at`, which is `at` if there is none.
  std::size_t match(std::size_t begin) {
    waiting_.clear();
    waiting_.push_back({0, begin});
    while (!waiting_.empty()) {
      const State state = waiting_.back();
      waiting_.pop_back();
      if (const std::size_t end = follow(state); end != kNone) return end;
    }
    return begin;
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  struct State {
    std::uint32_t step;
    std::size_t at;
  };

  bool is_tried(const Step& step, std::size_t at) {
    auto tried = tried_[at * pattern_.num_places_ + step.place];
    if (tried) return true;
    tried = true;
    return false;
  }

  // The size of the next character if it is one of a class, otherwise 0.
  std::size_t size_in(std::uint32_t number, std::size_t at) const {
    if (at >= text_.size()) return 0;
    const auto [value, size] = character_at(text_, at);
    return pattern_.classes_[number].has(value) ? size : 0;
  }

  // Follows the steps to a match, whose end it returns, or a dead end.
  std::size_t follow(State state) {
    auto [number, at] = state;
    while (true) {
      const Step& step = pattern_.steps_[number];
      std::uint32_t next = number + 1;
      switch (step.kind) {
        case StepKind::kCharacter: {
          const std::size_t size = size_in(step.first, at);
          if (size == 0) return kNone;
          at += size;
          break;
        }
        case StepKind::kWhile:
        case StepKind::kIf: {
          if (step.kind == StepKind::kWhile && is_tried(step, at)) return kNone;
          const std::size_t size = size_in(step.first, at);
          if (size > 0 && step.kind == StepKind::kWhile) next = number;
          at += size;
          break;
        }
        case StepKind::kAhead:
          if (size_in(step.first, at) == 0) return kNone;
          break;
        case StepKind::kNotAhead:
          if (size_in(step.first, at) > 0) return kNone;
          break;
        case StepKind::kLineEnd:
          if (at < text_.size() && text_[at] != '\n') return kNone;
          break;
        case StepKind::kChoice:
          if (is_tried(step, at)) return kNone;
          waiting_.push_back({step.second, at});
          next = step.first;
          break;
        case StepKind::kJump:
          next = step.first;
          break;
        case StepKind::kMatch:
          return at;
      }
      number = next;
    }
  }

  const Pattern& pattern_;
  std::string_view text_;
  std::vector<bool> tried_;
  std::vector<State> waiting_;
};

void Pattern::find(std::string_view text, Span part, FunctionRef<void(Span)> each) const {
  const std::string_view bytes = text.substr(part.begin, part.end - part.begin);
  Matching matching(*this, bytes);
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t end = matching.match(at);
    if (end == at) {
      at += character_at(bytes, at).size;
    } else {
      each({part.begin + at, part.begin + end});
      at = end;
    }
  }
}

}}}  // namespace heed::v0::text
