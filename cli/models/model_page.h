// An interactive page of all heads of a trained model.
#pragma once

#include <filesystem>
#include <string>

#include "heed/inspect/model_reading.h"
#include "heed/models/model.h"

namespace heed::cli {

// `path` is the folder or file of the model; its name becomes the page's title.
std::string model_page(const std::filesystem::path& path, const models::Model& model,
                       const inspect::ModelReading& reading);

}  // namespace heed::cli
