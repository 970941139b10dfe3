// A trained model at work, timed: how long it takes to begin, to read, to write, to make vectors.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/outcome.h"
#include "heed/models/model.h"

namespace heed::cli {

// Of models that make vectors, the numbers of tokens mean nothing.
struct ModelRequest {
  std::string path;
  std::int64_t prompt = 0;         // tokens that are read at once
  std::vector<std::int64_t> past;  // tokens behind which it writes
  std::int64_t tokens = 40;        // that it writes
  std::vector<std::int64_t> threads;
  int repetitions = 5;
};

// NOLINTNEXTLINE(bugprone-exception-escape): JSON that is moved does not throw
struct ModelFindings {
  // `work` is "start", "read", "write" or "embed".
  std::vector<Outcome> outcomes;
  // What whoever is compared reads too: "ids" of tokens, or "sentences".
  nlohmann::ordered_json input;
  // {past, ids}: the tokens that were written.
  nlohmann::ordered_json written;
};

// Measures the model of request.path. `model` is that one: it is let go of before the file is
// loaded again, so that there is one at a time.
ModelFindings measure_model(const ModelRequest& request, models::Model model);

}  // namespace heed::cli
