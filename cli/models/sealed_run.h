// The options --seal, --seal-file and --verify of verbs that compute with a trained model.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "heed/models/model.h"
#include "heed/models/seal.h"
#include "output_files.h"

namespace heed::cli {

struct SealArguments {
  bool is_printed = false;
  std::string file;
  std::string expected;  // a seal, or @ and the name of a file with one
};

void add_seal_options(CLI::App& verb, SealArguments& arguments);

// Seals a run of a verb and compares it with the seal that the user gives. Calls in this order.
class SealedRun {
 public:
  // Throws UsageError where --verify is no seal, or one of another kind; IoError where a file
  // cannot be read or written.
  SealedRun(const SealArguments& arguments, models::SealKind kind);

  // Where the computation writes its seal; null if no option asks for one.
  models::Seal* seal() noexcept { return is_wanted_ ? &seal_ : nullptr; }

  // Hashes the model's files; prints progress if that takes more than two seconds. Throws
  // Interrupted after Ctrl-C under an InterruptGuard and a cancellation.
  void hash(const models::Model& model) const;
  // Throws std::runtime_error where the seal is of another model, input or option: then the result
  // would say nothing.
  void check_inputs(const models::Seal& begun) const;

  // Adds the seal and the comparison to the result.
  void add_to(nlohmann::json& json) const;
  // Writes the file, and prints the seal and the comparison unless the result was printed as JSON.
  // Throws std::runtime_error where the seal was not reproduced.
  void finish(bool as_json);

 private:
  std::vector<models::SealDifference> differences() const;

  SealArguments arguments_;
  bool is_wanted_;
  std::optional<models::Seal> expected_;
  OutputFiles files_;
  models::Seal seal_;
};

}  // namespace heed::cli
