// Loads the parts of a transformer from files.
#include "models/load.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "heed/core/error.h"
#include "heed/models/model.h"
#include "heed/text/tokenizer.h"
#include "io/text_file.h"
#include "models/config_reading.h"
#include "models/graph.h"
#include "models/model_files.h"
#include "models/read_weights.h"
#include "models/weight_reader.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

class NoTokenizer final : public text::Tokenizer {
 public:
  explicit NoTokenizer(std::string folder) : folder_(std::move(folder)) {}

  std::int64_t vocab_size() const override { return 0; }
  text::Encoding encode(std::string_view, const text::EncodeOptions&) const override {
    throw InvalidArgument(fmt::format(
        "encode: {} has neither tokenizer.json nor vocab.txt, so its model takes ids, not texts. "
        "In "
        "Python AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER) makes tokenizer.json "
        "of tokenizer.model, or of vocab.json and merges.txt",
        folder_));
  }
  std::string decode(std::span<const std::int64_t>, const text::DecodeOptions&) const override {
    return "";
  }
  std::string token(std::int64_t id) const override { return fmt::format("{}", id); }
  std::string label(std::int64_t id) const override { return token(id); }
  std::optional<std::int64_t> id(std::string_view) const override { return std::nullopt; }
  bool is_special(std::int64_t) const override { return false; }

 private:
  std::string folder_;
};

// Encoding throws InvalidArgument, which names the folder and says what to do. The label of an id
// is its number, and it decodes to nothing.
std::unique_ptr<const text::Tokenizer> no_tokenizer(std::string folder) {
  return std::make_unique<NoTokenizer>(std::move(folder));
}

// Reads the encoder of a model from the same files.
std::shared_ptr<const Model::Parts> read_encoder(const Model::Parts& decoder,
                                                 WeightReader::Reads reads) {
  auto encoder = std::make_shared<Model::Parts>();
  encoder->config = *decoder.config.encoder;
  encoder->config.architecture = decoder.config.architecture;
  encoder->tokenizer = decoder.tokenizer;
  encoder->checkpoint = decoder.checkpoint;
  encoder->path = decoder.path;
  const WeightNames& names = names_in_folder(encoder->config);
  WeightReader reader(*encoder->checkpoint, names, reads);
  read_weights(reader, names, *encoder);
  encoder->tensors = reader.read();
  return encoder;
}

// Reads all weights: those of the layers, of an encoder and of products behind pooling. The
// checkpoint and the configuration must be set. Throws FormatError also for tensors that are left.
void read_all(WeightReader::Reads reads, Model::Parts& parts) {
  const ModelConfig& config = parts.config;
  const WeightNames& names =
      parts.checkpoint->gguf() ? names_in_gguf(config) : names_in_folder(config);
  WeightReader reader(*parts.checkpoint, names, reads);
  read_weights(reader, names, parts);
  if (config.encoder) {
    parts.encoder = read_encoder(parts, reads);
    reader.add_read(parts.encoder->tensors);
  }
  reader.check_all_read(config);
  if (config.pooling) read_dense(config.pooling->dense, reads, parts);
  parts.tensors = reader.read();
}

}  // namespace

bool has_tokenizer(const std::filesystem::path& folder) {
  return std::filesystem::exists(folder / "tokenizer.json") ||
         std::filesystem::exists(folder / "vocab.txt");
}

void check_weights(const Checkpoint& checkpoint, const ModelConfig& config) {
  Model::Parts parts;
  parts.checkpoint = checkpoint;
  parts.config = config;
  read_all(WeightReader::Reads::kSizes, parts);
}

Model load(const std::filesystem::path& path) {
  const io::ReadFiles small_files;
  const std::filesystem::path folder =
      std::filesystem::is_directory(path) ? transformer_folder(path) : path;
  check_model_path(folder);
  auto parts = std::make_shared<Model::Parts>();
  parts->path = path;
  const Checkpoint& checkpoint = parts->checkpoint.emplace(Checkpoint::open(folder));
  const std::optional<GgufFile> gguf = checkpoint.gguf();
  parts->config = gguf ? read_config(*gguf) : read_config(path);
  parts->tokenizer =
      gguf || has_tokenizer(folder) ? text::load_tokenizer(folder) : no_tokenizer(folder.string());
  read_all(WeightReader::Reads::kWeights, *parts);
  parts->small_files = small_files.paths();
  return Model(std::move(parts));
}

}}}  // namespace heed::v0::models
