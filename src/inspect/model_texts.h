// Texts as what a model's forward pass takes.
#pragma once

#include "heed/inspect/model_heads.h"

namespace heed::inline v0::inspect {

models::Inputs inputs_of(const ModelText& text);

}  // namespace heed::inline v0::inspect
