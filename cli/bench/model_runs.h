// Times a trained model: loading, reading a prompt, writing tokens, making vectors.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/outcome.h"
#include "heed/models/model.h"

namespace heed::cli {

// The work to measure. Models that make vectors ignore the numbers of tokens.
struct ModelRequest {
  std::string path;
  std::int64_t prompt = 0;         // read at once
  std::vector<std::int64_t> past;  // numbers of tokens before the written ones
  std::int64_t tokens = 40;        // to write
  std::vector<std::int64_t> threads;
  int repetitions = 5;
};

// NOLINTNEXTLINE(bugprone-exception-escape): JSON that is moved does not throw
struct ModelFindings {
  // The description's "work" is "start", "read", "write" or "embed".
  std::vector<Outcome> outcomes;
  // The input, for a comparison with other programs: "ids" of tokens, or "sentences".
  nlohmann::ordered_json input;
  // {past, ids}: the tokens that were written.
  nlohmann::ordered_json written;
};

// Measures the model at request.path, which `model` is. It is freed before the file is loaded
// again, so that only one copy is in memory.
ModelFindings measure_model(const ModelRequest& request, models::Model model);

}  // namespace heed::cli
