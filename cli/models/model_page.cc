#include "models/model_page.h"

#include <fmt/format.h>

#include "heed/viz/explorer.h"
#include "models/trained_model.h"

namespace heed::cli {

std::string model_page(const models::Model& model, const inspect::ModelReading& reading) {
  ModelAttention page;
  page.title = model.config().architecture;
  page.note = fmt::format("\"{}\", read by {}.", reading.text, describe_model(model));
  page.tokens = reading.input.labels;
  page.words = reading.input.tokens.words;
  for (const inspect::ReadLayer& layer : reading.layers) {
    page.layers.push_back({.query = layer.query, .key = layer.key, .mask = reading.mask});
  }
  return explorer_model_page(page);
}

}  // namespace heed::cli
