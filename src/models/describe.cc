#include "heed/models/describe.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <memory>
#include <system_error>
#include <utility>

#include "heed/core/error.h"
#include "heed/models/checkpoint.h"
#include "heed/text/tokenizer.h"
#include "models/config_reading.h"
#include "models/load.h"
#include "models/model_files.h"

namespace heed { inline namespace v0 { namespace models {

namespace fs = std::filesystem;

namespace {

// Calls read(). An error of the file becomes a refusal.
template <class Read>
void attempt(ModelDescription& description, const Read& read) {
  try {
    read();
  } catch (const FormatError& error) {
    description.refusals.emplace_back(error.what());
  } catch (const IoError& error) {
    description.refusals.emplace_back(error.what());
  } catch (const InvalidArgument& error) {
    description.refusals.emplace_back(error.what());
  }
}

// The family as a configuration names it, whether or not heed has it.
std::string architecture_of(const fs::path& folder) {
  const JsonDocument document(folder / "config.json");
  ConfigFields fields(document.root());
  if (const auto names = fields.find("architectures");
      names && names->is(io::JsonKind::kArray) && !names->items().empty()) {
    return names->items().front().string();
  }
  return fields.string_or("model_type", "");
}

std::string architecture_of(const GgufFile& file) {
  return file.contains("general.architecture") ? file.string("general.architecture") : "";
}

std::vector<StoredTensors> by_type(const Checkpoint& checkpoint) {
  std::map<std::string, StoredTensors> types;
  for (const TensorEntry& entry : checkpoint.entries()) {
    StoredTensors& type = types[entry.type];
    type.type = entry.type;
    type.is_read = entry.is_read;
    ++type.tensors;
    type.elements += entry.num_elements;
    type.bytes += entry.num_bytes;
  }
  std::vector<StoredTensors> sorted;
  for (auto& [name, type] : types) sorted.push_back(std::move(type));
  std::stable_sort(
      sorted.begin(), sorted.end(),
      [](const StoredTensors& a, const StoredTensors& b) { return a.bytes > b.bytes; });
  return sorted;
}

bool has_template_file(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder / "chat_template.jinja", error)) return true;
  const fs::path config = folder / "tokenizer_config.json";
  if (!fs::exists(config, error)) return false;
  const JsonDocument document(config);
  return ConfigFields(document.root()).find("chat_template").has_value();
}

void describe_tokenizer(const fs::path& folder, ModelDescription& description) {
  const std::unique_ptr<const text::Tokenizer> tokenizer = text::load_tokenizer(folder);
  description.num_tokens = tokenizer->vocab_size();
  if (!description.has_chat_template) return;
  attempt(description, [&] {
    const text::ChatMessage message{"user", "Hello"};
    tokenizer->apply_chat_template({&message, 1});
  });
}

}  // namespace

std::int64_t ModelDescription::num_elements() const noexcept {
  std::int64_t sum = 0;
  for (const StoredTensors& type : tensors) sum += type.elements;
  return sum;
}

std::int64_t ModelDescription::num_bytes() const noexcept {
  std::int64_t sum = 0;
  for (const StoredTensors& type : tensors) sum += type.bytes;
  return sum;
}

namespace {

// @param folder with the transformer, or the GGUF file
void describe_files(const fs::path& folder, ModelDescription& description) {
  const Checkpoint checkpoint = Checkpoint::open(folder);
  const std::optional<GgufFile> gguf = checkpoint.gguf();
  description.num_files = std::ssize(checkpoint.files());
  description.tensors = by_type(checkpoint);
  attempt(description, [&] {
    description.architecture = gguf ? architecture_of(*gguf) : architecture_of(folder);
    description.has_chat_template =
        gguf ? gguf->contains("tokenizer.chat_template") : has_template_file(folder);
  });
  attempt(description, [&] {
    description.config = gguf ? read_config(*gguf) : read_config(description.path);
    check_weights(checkpoint, *description.config);
  });
  if (gguf || has_tokenizer(folder)) {
    attempt(description, [&] { describe_tokenizer(folder, description); });
  }
}

}  // namespace

ModelDescription describe(const fs::path& path) {
  const bool is_folder = fs::is_directory(path);
  ModelDescription description{.path = path, .is_gguf = !is_folder};
  fs::path folder = path;
  attempt(description, [&] {
    if (is_folder) folder = transformer_folder(path);
  });
  check_model_path(folder);
  if (!description.opens()) return description;
  try {
    describe_files(folder, description);
  } catch (const FormatError& error) {  // of a header; a file that cannot be read is the caller's
    description.refusals.emplace_back(error.what());
  }
  return description;
}

namespace {

// True for a GGUF file that is whole, or the first of several parts.
bool is_first_gguf(const fs::path& file) {
  const std::string name = file.filename().string();
  if (!name.ends_with(".gguf")) return false;
  constexpr std::size_t kEnding = std::string_view("-00001-of-00003.gguf").size();
  if (name.size() < kEnding) return true;
  std::string ending = name.substr(name.size() - kEnding);
  const bool is_first = ending.starts_with("-00001-");
  for (char& c : ending) {
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) c = '0';
  }
  return ending != "-00000-of-00000.gguf" || is_first;
}

}  // namespace

std::vector<ModelDescription> describe_all(const fs::path& path) {
  std::error_code error;
  const auto is_model_folder = [&](const fs::path& folder) {
    return fs::exists(folder / "config.json", error) || fs::exists(folder / "modules.json", error);
  };
  std::vector<fs::path> found;
  if (fs::is_directory(path, error) && !is_model_folder(path)) {
    for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
      if (is_model_folder(entry.path()) || is_first_gguf(entry.path())) {
        found.push_back(entry.path());
      }
    }
    std::sort(found.begin(), found.end());
  }
  if (found.empty()) return {describe(path)};
  std::vector<ModelDescription> models;
  for (const fs::path& model : found) {
    ModelDescription unread{.path = model, .is_gguf = !fs::is_directory(model, error)};
    attempt(unread, [&] { models.push_back(describe(model)); });
    if (!unread.opens()) models.push_back(std::move(unread));
  }
  return models;
}

}}}  // namespace heed::v0::models
