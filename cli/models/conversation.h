// Conversations with a model that answers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "heed/models/generate.h"
#include "heed/text/tokenizer.h"

namespace heed::cli {

// The token that ends an answer in the model's template, unless it ends every text of the model.
std::vector<std::int64_t> end_ids_of_template(const models::Model& model);

// The messages so far. The keys and values of what was read are kept, so that a turn does not read
// the earlier ones again.
class Conversation {
 public:
  // @param system a text for the model, or empty
  Conversation(const models::Model& model, const std::string& system);
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  // Takes a message and returns the answer to it. Where this fails, the message is forgotten.
  models::Generated answer(const std::string& message, models::GenerateOptions options);
  // Forgets all messages but that of the system.
  void reset();

 private:
  const models::Model& model_;
  models::KeptText kept_;
  std::vector<text::ChatMessage> messages_;
  std::size_t num_first_ = 0;  // messages that reset() keeps
};

// Takes turns: each line of standard input is a message. `answer` prints the answer to it.
// "/reset" begins anew, and "/exit" or the end of the input ends.
using Answer = std::function<void(const std::string& message, bool is_terminal)>;
void take_turns(Conversation& conversation, const Answer& answer);

}  // namespace heed::cli
