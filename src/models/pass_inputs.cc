#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <span>

#include "heed/core/error.h"
#include "models/graph.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

void check_ids(const char* function, const char* name, std::span<const std::int64_t> ids,
               std::int64_t size) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && ids[i] < size) continue;
    throw InvalidArgument(
        fmt::format("{}: {}[{}] is {}, expected one of [0, {})", function, name, i, ids[i], size));
  }
}

void check_boundaries(const char* function, const ModelConfig& config, const PassInputs& inputs) {
  const auto& boundaries = inputs.boundaries;
  const bool is_rising = std::is_sorted(boundaries.begin(), boundaries.end());
  if (boundaries.empty() || boundaries.front() != 0 || boundaries.back() != inputs.size() ||
      !is_rising) {
    throw InvalidArgument(fmt::format(
        "{}: boundaries are [{}], expected numbers that rise from 0 to the number of ids, {}",
        function, fmt::join(boundaries, ", "), inputs.size()));
  }
  const std::int64_t before = inputs.past == nullptr ? 0 : inputs.past->length();
  for (std::size_t text = 0; text + 1 < boundaries.size(); ++text) {
    const std::int64_t length = boundaries[text + 1] - boundaries[text];
    if (length <= config.max_positions - before) continue;
    throw InvalidArgument(fmt::format(
        "{}: text {} has {} tokens{}, the model's positions are {}", function, text, length,
        before == 0 ? "" : fmt::format(" after {}", before), config.max_positions));
  }
}

void check_source(const char* function, const ModelConfig& config, const PassInputs& inputs) {
  if (!config.encoder && inputs.source == nullptr) return;
  if (!config.encoder) {
    throw InvalidArgument(
        fmt::format("{}: source is given, but a model of architecture {} has no "
                    "encoder",
                    function, config.architecture));
  }
  if (inputs.source == nullptr) {
    throw InvalidArgument(
        fmt::format("{}: a model of architecture {} writes of a source text, and "
                    "source is not given; read_source() makes it",
                    function, config.architecture));
  }
  if (std::ssize(inputs.source->keys) != config.num_layers || inputs.num_texts() != 1) {
    throw InvalidArgument(
        fmt::format("{}: a source of {} layers goes with {} texts, expected {} "
                    "layers and one text",
                    function, inputs.source->keys.size(), inputs.num_texts(), config.num_layers));
  }
}

}  // namespace

void check_inputs(const char* function, const ModelConfig& config, const PassInputs& inputs) {
  check_ids(function, "ids", inputs.ids, config.vocab_size);
  check_boundaries(function, config, inputs);
  check_source(function, config, inputs);
  if (inputs.type_ids.empty()) return;
  if (inputs.type_ids.size() != inputs.ids.size()) {
    throw InvalidArgument(fmt::format("{}: there are {} type_ids, expected one for each of {} ids",
                                      function, inputs.type_ids.size(), inputs.ids.size()));
  }
  check_ids(function, "type_ids", inputs.type_ids,
            std::max<std::int64_t>(config.num_token_types, 1));
}

}}}  // namespace heed::v0::models
