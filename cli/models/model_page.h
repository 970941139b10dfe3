// All heads of a trained model as a page to look around in.
#pragma once

#include <filesystem>
#include <string>

#include "heed/inspect/model_reading.h"
#include "heed/models/model.h"

namespace heed::cli {

// `path` is the folder or file that the model came from: its name is the page's title.
std::string model_page(const std::filesystem::path& path, const models::Model& model,
                       const inspect::ModelReading& reading);

}  // namespace heed::cli
