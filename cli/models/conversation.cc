#include "models/conversation.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "heed/core/error.h"
#include "io/unicode.h"

namespace heed::cli {

namespace {

constexpr std::string_view kBlanks = " \t\r\n";

bool ends_every_text(const models::Model& model, std::int64_t id) {
  const std::vector<std::int64_t>& ends = model.config().end_ids;
  return std::find(ends.begin(), ends.end(), id) != ends.end() ||
         model.tokenizer().special_tokens().end == id;
}

}  // namespace

std::vector<std::int64_t> end_ids_of_template(const models::Model& model) {
  const text::Tokenizer& tokenizer = model.tokenizer();
  constexpr std::string_view kAnswer = "An answer that no template has.";
  const std::vector<text::ChatMessage> messages{{"user", "?"}, {"assistant", std::string(kAnswer)}};
  std::string behind;
  try {
    const std::string text =
        tokenizer.apply_chat_template(messages, {.add_generation_prompt = false});
    const std::size_t found = text.rfind(kAnswer);
    if (found == std::string::npos) return {};
    behind = text.substr(found + kAnswer.size());
  } catch (const std::runtime_error&) {  // FormatError: the template has a problem
    return {};
  } catch (const InvalidArgument&) {  // it refuses such a conversation
    return {};
  }
  behind.erase(0, std::min(behind.find_first_not_of(kBlanks), behind.size()));
  const auto ids = tokenizer.ids(behind, {.add_special_tokens = false});
  if (ids.empty() || !tokenizer.is_special(ids.front()) || ends_every_text(model, ids.front())) {
    return {};
  }
  return {ids.front()};
}

Conversation::Conversation(const models::Model& model, const std::string& system) : model_(model) {
  if (!system.empty()) messages_.push_back({"system", system});
  num_first_ = messages_.size();
}

models::Generated Conversation::answer(const std::string& message,
                                       models::GenerateOptions options) {
  options.kept = &kept_;
  messages_.push_back({"user", message});
  try {
    const auto prompt = model_.tokenizer().encode_chat(messages_).ids;
    models::Generated text = models::generate(model_, prompt, options);
    const bool is_valid = !unicode::find_invalid(text.text);
    messages_.push_back({"assistant", is_valid ? text.text : unicode::legible(text.text)});
    return text;
  } catch (...) {
    messages_.pop_back();
    throw;
  }
}

void Conversation::reset() {
  messages_.resize(num_first_);
  kept_ = {};
}

void take_turns(Conversation& conversation, const Answer& answer) {
  const bool is_terminal = ::isatty(STDIN_FILENO) != 0;
  for (std::string line;;) {
    if (is_terminal) std::cout << "> " << std::flush;
    if (!std::getline(std::cin, line)) break;
    if (line.ends_with('\r')) line.pop_back();
    if (line.find_first_not_of(kBlanks) == std::string::npos) continue;
    if (line == "/exit") return;
    if (line == "/reset") {
      conversation.reset();
      continue;
    }
    try {
      answer(line, is_terminal);
    } catch (const InvalidArgument& error) {  // a message that is too long
      if (!is_terminal) throw;
      std::cerr << error.what() << '\n';
    }
  }
  if (is_terminal) std::cout << std::endl;
}

}  // namespace heed::cli
