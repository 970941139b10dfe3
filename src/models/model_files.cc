#include "models/model_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "core/printable.h"
#include "heed/core/error.h"
#include "io/byte_source.h"
#include "io/json.h"
#include "models/config_reading.h"

namespace heed { inline namespace v0 { namespace models {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kFolders =
    "heed opens folders with config.json, model.safetensors and tokenizer.json, as "
    "save_pretrained() writes them, and GGUF files";

// Model files that heed cannot open, by the ending of their names.
struct ForeignFile {
  std::string_view ending;
  std::string_view what;
  std::string_view remedy;
};
constexpr std::string_view kSaveAgain =
    "save them as safetensors in Python: "
    "transformers.AutoModel.from_pretrained(FOLDER).save_pretrained(NEW_FOLDER), with "
    "AutoModelForCausalLM for a model that writes";
constexpr ForeignFile kForeignFiles[] = {
    {"adapter_model.safetensors", "an adapter (LoRA), a change of another model's weights",
     "merge it in Python: peft's merge_and_unload(), then save_pretrained(NEW_FOLDER)"},
    {"adapter_model.bin", "an adapter (LoRA), a change of another model's weights",
     "merge it in Python: peft's merge_and_unload(), then save_pretrained(NEW_FOLDER)"},
    {".safetensors", "a file of weights without the configuration that says what to compute",
     "give the folder"},
    {".bin", "a file of weights that PyTorch has pickled, which can run code", kSaveAgain},
    {".pt", "a file of weights that PyTorch has pickled, which can run code", kSaveAgain},
    {".pth", "a file of weights that PyTorch has pickled, which can run code", kSaveAgain},
    {".ckpt", "a file of weights that PyTorch has pickled, which can run code", kSaveAgain},
    {".h5", "a file of weights of TensorFlow", kSaveAgain},
    {".msgpack", "a file of weights of Flax", kSaveAgain},
    {".onnx", "a graph of ONNX",
     "give the folder or the GGUF file of the model that it was made of"},
    {".json", "a configuration or an index", "give the folder"}};

std::string lower_name(const fs::path& path) {
  std::string name = path.filename().string();
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

const ForeignFile* foreign_file(const fs::path& path) {
  const std::string name = lower_name(path);
  const auto* const found =
      std::find_if(std::begin(kForeignFiles), std::end(kForeignFiles),
                   [&](const ForeignFile& file) { return name.ends_with(file.ending); });
  return found == std::end(kForeignFiles) ? nullptr : found;
}

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

[[noreturn]] void refuse(const fs::path& path, std::string_view what, std::string_view remedy) {
  throw IoError(fmt::format("{}: this is {}; {}", io::printable(path.string()), what, remedy));
}

void check_model_file(const fs::path& path) {
  if (is_gguf(path)) return;
  const ForeignFile* const file = foreign_file(path);
  if (file == nullptr) refuse(path, "no model that heed knows", kFolders);
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (file->remedy != "give the folder") refuse(path, file->what, file->remedy);
  if (is_there(folder / "config.json")) {
    refuse(path, file->what, fmt::format("give its folder, {}", io::printable(folder.string())));
  }
  refuse(path, file->what, kFolders);
}

// The base model that an adapter's configuration names.
std::string base_of_adapter(const fs::path& config) {
  const JsonDocument document(config);
  const std::string base = document.root().string_or("base_model_name_or_path", "");
  return base.empty() ? "another model" : io::printable(base);
}

// The names of the files in a folder, sorted.
std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Throws for a folder without the `missing` file; the message says what to do with the files in it.
[[noreturn]] void refuse_folder(const fs::path& folder, std::string_view missing) {
  const std::vector<fs::path> files = files_in(folder);
  const auto gguf = std::find_if(files.begin(), files.end(), [](const fs::path& file) {
    return lower_name(file).ends_with(".gguf");
  });
  const std::string what = fmt::format("a folder without {}", missing);
  if (gguf != files.end()) {
    refuse(folder, what,
           fmt::format("give the GGUF file in it, {}", io::printable(gguf->string())));
  }
  const auto weights = std::find_if(files.begin(), files.end(), [](const fs::path& file) {
    const ForeignFile* const known = foreign_file(file);
    return known != nullptr && known->ending != ".json" && known->ending != ".safetensors";
  });
  if (weights == files.end() || missing == "config.json") refuse(folder, what, kFolders);
  const ForeignFile& known = *foreign_file(*weights);
  refuse(folder, what,
         fmt::format("{} in it is {}: {}", io::printable(weights->filename().string()), known.what,
                     known.remedy));
}

void check_model_folder(const fs::path& folder) {
  if (const fs::path adapter = folder / "adapter_config.json"; is_there(adapter)) {
    refuse(folder,
           fmt::format("the folder of an adapter (LoRA), a change of {}", base_of_adapter(adapter)),
           "merge it in Python: peft's merge_and_unload(), then save_pretrained(NEW_FOLDER). Where "
           "the weights have it already, take adapter_config.json away");
  }
  if (!is_there(folder / "config.json")) refuse_folder(folder, "config.json");
  if (is_there(folder / "model.safetensors")) return;
  if (is_there(folder / "model.safetensors.index.json")) return;
  refuse_folder(folder, "model.safetensors or model.safetensors.index.json");
}

}  // namespace

bool is_gguf(const fs::path& path) {
  if (path.extension() == ".gguf") return true;
  if (path.extension() == ".safetensors") return false;
  constexpr std::string_view kMagic = "GGUF";
  io::FileSource file(path);
  std::string begin(kMagic.size(), '\0');
  if (file.size() < static_cast<std::int64_t>(begin.size())) return false;
  file.read(0, std::as_writable_bytes(std::span(begin)));
  return begin == kMagic;
}

void check_model_path(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return check_model_folder(path);
  if (fs::exists(path, error)) check_model_file(path);
}

namespace {

constexpr std::string_view kMap = "weight_map";

bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

// Reads the members of "weight_map"; other members are skipped at any depth.
class IndexReader : public io::JsonReader {
 public:
  explicit IndexReader(const std::string& file) : JsonReader(file), file_(file) {}

  std::map<std::string, std::string> take() {
    if (!has_map_) fail("there is no object 'weight_map'");
    return std::move(files_);
  }

  bool start_object(std::size_t) override {
    refuse_in_map("an object");
    ++depth_;
    if (depth_ == 2 && is_at_map_) begin_map();
    return true;
  }
  bool end_object() override {
    if (depth_ == 2) is_in_map_ = false;
    --depth_;
    return true;
  }
  bool start_array(std::size_t) override {
    refuse("an array");
    ++depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool key(string_t& key) override {
    if (is_in_map_) {
      tensor_ = key;
      if (files_.contains(key)) fail(fmt::format("{} occurs twice", subject()));
    }
    if (depth_ == 1) is_at_map_ = key == kMap;
    return true;
  }
  bool string(string_t& value) override {
    if (!is_in_map_) return refuse("a string");
    if (!is_plain_name(value)) {
      fail(fmt::format("{} lies in '{}', expected the name of a file in the same folder", subject(),
                       io::printable(value)));
    }
    files_.emplace(tensor_, value);
    return true;
  }
  bool null() override { return refuse("null"); }
  bool boolean(bool) override { return refuse("a boolean"); }
  bool number_integer(number_integer_t) override { return refuse("a number"); }
  bool number_unsigned(number_unsigned_t) override { return refuse("a number"); }
  bool number_float(number_float_t, const string_t&) override { return refuse("a number"); }

 private:
  [[noreturn]] void fail(const std::string& problem) const { throw FormatError(file_, 0, problem); }

  std::string subject() const { return fmt::format("tensor '{}'", io::printable(tensor_)); }

  void begin_map() {
    if (has_map_) fail("'weight_map' occurs twice");
    has_map_ = true;
    is_in_map_ = true;
  }

  void refuse_in_map(std::string_view found) const {
    if (is_in_map_) fail(fmt::format("{} lies in {}, expected a string", subject(), found));
  }

  // Throws where only an object may stand; returns true elsewhere.
  bool refuse(std::string_view found) const {
    refuse_in_map(found);
    if (depth_ == 0) fail(fmt::format("the index is {}, expected an object", found));
    if (depth_ == 1 && is_at_map_) {
      fail(fmt::format("'weight_map' is {}, expected an object", found));
    }
    return true;
  }

  const std::string& file_;
  std::map<std::string, std::string> files_;
  int depth_ = 0;
  bool is_at_map_ = false;  // the last key of the outermost object was "weight_map"
  bool is_in_map_ = false;
  bool has_map_ = false;
  std::string tensor_;
};

}  // namespace

std::map<std::string, std::string> parse_checkpoint_index(std::string_view text,
                                                          const std::string& file) {
  IndexReader reader(file);
  io::read_json(text, reader);
  return reader.take();
}

}}}  // namespace heed::v0::models
