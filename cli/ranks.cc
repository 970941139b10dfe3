#include "ranks.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "verbs.h"

namespace heed::cli {

namespace {

Communicator* ranks_of_command = nullptr;

// Returns the number of processes that were started together, by each MPI's environment variable; 0
// if unknown.
int num_started() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"}) {
    const char* const value = std::getenv(name);
    if (value == nullptr) continue;
    const std::string_view text = value;
    int count = 0;
    std::from_chars(text.data(), text.data() + text.size(), count);
    if (count > 0) return count;
  }
  return 0;
}

}  // namespace

Communicator* ranks() { return ranks_of_command; }

bool is_first_rank() { return ranks_of_command == nullptr || ranks_of_command->rank() == 0; }

void on_first_rank(const std::function<void()>& part) {
  if (ranks_of_command == nullptr) return part();
  run_on_all(*ranks_of_command, [&] {
    if (is_first_rank()) part();
  });
}

std::string from_first_rank(const std::function<std::string()>& read) {
  std::string text;
  on_first_rank([&] { text = read(); });
  return ranks_of_command == nullptr ? text : gather_texts(*ranks_of_command, text).front();
}

void refuse_ranks(const std::string& verb) {
  if (ranks_of_command == nullptr) return;
  throw UsageError(
      fmt::format("{} does not divide its work: {} processes were started, expected one", verb,
                  ranks_of_command->size()));
}

bool is_divided(int argc, char** argv) {
  const auto word = [&](int i) { return std::string_view(i < argc ? argv[i] : ""); };
  if (word(1) != "train" && !(word(1) == "bench" && word(2) == "distributed")) return false;
  // PMIx does not give the number of processes in the environment; MPI does after its start.
  return num_started() > 1 || (num_started() == 0 && std::getenv("PMIX_RANK") != nullptr);
}

void detail::set_ranks(Communicator* ranks) { ranks_of_command = ranks; }

}  // namespace heed::cli
