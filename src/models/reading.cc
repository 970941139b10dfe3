#include "models/reading.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "heed/core/error.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

// True if keys of a text of one length are turned by other frequencies than those of the other.
bool turns_otherwise(const ModelConfig& config, std::int64_t length, std::int64_t other) {
  return std::any_of(config.rotaries.begin(), config.rotaries.end(), [&](const auto& rotary) {
    const auto* const scaling = std::get_if<LongRopeScaling>(&rotary.scaling);
    if (scaling == nullptr) return false;
    return (length > scaling->original_max_len) != (other > scaling->original_max_len);
  });
}

// A past with the tokens that the prompt and the kept text begin with, without the prompt's last,
// whose hidden state is needed.
nn::Past begun_past(const Model& model, std::span<const std::int64_t> prompt,
                    const GenerateOptions& options) {
  const bool is_kept = options.kept != nullptr && options.kept->past && !model.config().encoder;
  if (!is_kept || turns_otherwise(model.config(), options.kept->past->length(),
                                  static_cast<std::int64_t>(prompt.size()))) {
    return model.make_past(options.past);
  }
  const std::vector<std::int64_t>& ids = options.kept->ids;
  const auto end =
      prompt.begin() + static_cast<std::ptrdiff_t>(std::min(ids.size(), prompt.size() - 1));
  const auto common = std::mismatch(prompt.begin(), end, ids.begin()).first - prompt.begin();
  try {
    nn::Past past = *options.kept->past;
    past.truncate(common);
    return past;
  } catch (const InvalidArgument&) {  // a window has let go of the keys before its end
    return model.make_past(options.past);
  }
}

Tensor<float> last_row(const Tensor<float>& hidden) {
  const std::int64_t rows = hidden.extent(0);
  return to_tensor(hidden.view().slice(0, rows - 1, rows));
}

}  // namespace

Reading::Reading(const Model& model, std::span<const std::int64_t> prompt,
                 const GenerateOptions& options)
    : model_(model), options_(options.past), past_(begun_past(model, prompt, options)) {
  if (model.config().encoder) {
    source_ = model.read_source(prompt);
    ids_.push_back(model.config().start_id);
  } else {
    ids_.assign(prompt.begin(), prompt.end());
  }
}

Tensor<float> Reading::read_rest() {
  const auto rest = std::span<const std::int64_t>(ids_).subspan(static_cast<std::size_t>(length()));
  return last_row(model_.forward(rest, past_, forward_options()));
}

Tensor<float> Reading::read(std::int64_t id) {
  ids_.push_back(id);
  if (turns_otherwise(model_.config(), length(), length() + 1)) past_ = model_.make_past(options_);
  return read_rest();
}

void Reading::keep(KeptText& kept) && {
  kept = {};
  if (source_) return;
  ids_.resize(static_cast<std::size_t>(length()));
  kept.ids = std::move(ids_);
  kept.past = std::move(past_);
}

}}}  // namespace heed::v0::models
