// All heads of a trained model as a page to look around in.
#pragma once

#include <string>

#include "heed/inspect/model_reading.h"
#include "heed/models/model.h"

namespace heed::cli {

std::string model_page(const models::Model& model, const inspect::ModelReading& reading);

}  // namespace heed::cli
