#include "models/model_page.h"

#include <fmt/format.h>

#include "heed/viz/explorer.h"
#include "models/trained_model.h"
#include "picture_file.h"

namespace heed::cli {

namespace {

// Returns "all-MiniLM-L6-v2" for "models/all-MiniLM-L6-v2/", also where the path is "." or ends in
// "..".
std::string name_of(const std::filesystem::path& path) {
  const std::filesystem::path whole = std::filesystem::absolute(path).lexically_normal();
  return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

}  // namespace

std::string model_page(const std::filesystem::path& path, const models::Model& model,
                       const inspect::ModelReading& reading) {
  ModelAttention page;
  page.title = name_of(path);
  page.note = fmt::format("“{}”, read by {}.", headline(reading.text), describe_model(model));
  page.tokens = reading.input.labels;
  page.words = reading.input.tokens.words;
  for (const inspect::ReadLayer& layer : reading.layers) {
    page.layers.push_back(
        {.query = layer.query, .key = layer.key, .value = layer.value, .mask = reading.mask});
  }
  return explorer_model_page(page);
}

}  // namespace heed::cli
