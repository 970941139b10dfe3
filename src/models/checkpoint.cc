#include "heed/models/checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/printable.h"
#include "heed/core/error.h"
#include "io/byte_source.h"
#include "io/gguf_header.h"
#include "io/gguf_parts.h"
#include "io/io_error.h"
#include "io/mapped_file.h"
#include "io/safetensors_header.h"
#include "io/text_file.h"
#include "models/formats/block_formats.h"
#include "models/model_files.h"

namespace heed { inline namespace v0 { namespace models {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kModelFile = "model.safetensors";
constexpr std::string_view kIndexFile = "model.safetensors.index.json";

// A larger file is not an index: 2²⁰ tensors of 100 bytes.
constexpr std::int64_t kMaxIndexBytes = std::int64_t{100} << 20;

// The place of a tensor of any type in its file.
struct Entry {
  std::optional<WeightType> type;
  std::string type_name;  // as spelled in the file
  Shape shape;
  std::span<const std::byte> bytes;
  std::string file;
  std::int64_t offset;  // bytes from the beginning of the file
};

template <class IsIt>
std::optional<WeightType> find_type(const IsIt& is_it) {
  const auto* const found = std::find_if(kWeightFormats.begin(), kWeightFormats.end(), is_it);
  if (found == kWeightFormats.end()) return std::nullopt;
  return static_cast<WeightType>(found - kWeightFormats.begin());
}

std::optional<WeightType> type_of_safetensors(std::string_view code) {
  return find_type([code](const WeightFormat& format) {
    return !code.empty() && format.safetensors_code == code;
  });
}

std::optional<WeightType> type_of_ggml(std::uint32_t number) {
  return find_type([number](const WeightFormat& format) { return format.ggml_number == number; });
}

// The names of the types that files of models may have.
std::string types_read() {
  std::vector<std::string> numbers;
  std::vector<std::string> blocks;
  for (const WeightFormat& format : kWeightFormats) {
    if (format.safetensors_code.empty()) {
      blocks.push_back(io::ggml_type_name(*format.ggml_number));
    } else {
      numbers.emplace_back(format.safetensors_code);
    }
  }
  const std::string last = blocks.back();
  blocks.pop_back();
  return fmt::format("{} and GGUF's {} and {}", fmt::join(numbers, ", "), fmt::join(blocks, ", "),
                     last);
}

constexpr bool has_sizes_of_ggml(const WeightFormat& format) {
  if (!format.ggml_number) return !format.safetensors_code.empty();
  const io::GgmlType* const type = io::find_ggml_type(*format.ggml_number);
  return type != nullptr && type->block_elements == format.block_elements &&
         type->block_bytes == format.block_bytes;
}
static_assert(std::all_of(kWeightFormats.begin(), kWeightFormats.end(), has_sizes_of_ggml));

}  // namespace

std::string_view to_string(WeightType type) { return format_of(type).name; }

std::int64_t row_bytes(WeightType type, std::int64_t columns) {
  const WeightFormat& format = format_of(type);
  if (columns % format.block_elements != 0) {
    throw InvalidArgument(fmt::format("row_bytes: columns is {}, {} has blocks of {}", columns,
                                      format.name, format.block_elements));
  }
  return checked_multiply(columns / format.block_elements, format.block_bytes);
}

Tensor<float> to_float(const StoredTensor& tensor) {
  const bool is_scalar = tensor.shape.rank() == 0;
  const std::int64_t columns = is_scalar ? 1 : tensor.shape[-1];
  const std::int64_t count = tensor.shape.num_elements();
  const std::int64_t rows = count == 0 ? 0 : count / columns;
  const std::int64_t expected = checked_multiply(rows, row_bytes(tensor.type, columns));
  if (expected != static_cast<std::int64_t>(tensor.bytes.size())) {
    throw InvalidArgument(
        fmt::format("to_float: tensor '{}' of shape {} takes {} bytes as {}, but has {}",
                    io::printable(tensor.name), heed::to_string(tensor.shape), expected,
                    to_string(tensor.type), tensor.bytes.size()));
  }
  auto result = Tensor<float>::uninitialized(tensor.shape);
  decode(tensor.type, tensor.bytes.data(), count, result.data());
  return result;
}

struct Checkpoint::Files {
  std::string name;
  std::vector<std::unique_ptr<const io::MappedFile>> mapped;
  std::optional<GgufFile> gguf;
  std::map<std::string, Entry, std::less<>> tensors;

  void add_safetensors(const fs::path& path);
  void add_gguf(const GgufFile& file);
  void add(const std::string& tensor, const Entry& entry);
  void add_folder(const fs::path& folder);
  void add_shards(const fs::path& folder, const fs::path& index);
  void check_shards(const std::map<std::string, std::string>& shard_of, const fs::path& folder,
                    const fs::path& index) const;
};

void Checkpoint::Files::add(const std::string& tensor, const Entry& entry) {
  const auto [place, is_new] = tensors.emplace(tensor, entry);
  if (is_new) return;
  throw FormatError(
      entry.file, entry.offset,
      fmt::format("tensor '{}' is in '{}' too", io::printable(tensor), place->second.file));
}

void Checkpoint::Files::add_safetensors(const fs::path& path) {
  const auto& file = *mapped.emplace_back(std::make_unique<const io::MappedFile>(path));
  io::MemorySource source(file.name(), file.bytes());
  const std::string text = io::read_safetensors_header(source);
  const std::int64_t begin = io::kSafetensorsPrefix + static_cast<std::int64_t>(text.size());
  const auto header = io::parse_safetensors_header(text, file.name(), source.size() - begin);
  for (const auto& [tensor, entry] : header.entries) {
    const auto bytes = file.bytes().subspan(static_cast<std::size_t>(begin + entry.begin),
                                            static_cast<std::size_t>(entry.end - entry.begin));
    const std::string_view code = entry.type->safetensors_code;
    add(tensor, {type_of_safetensors(code), std::string(code), entry.shape, bytes, file.name(),
                 begin + entry.begin});
  }
}

void Checkpoint::Files::add_gguf(const GgufFile& file) {
  const std::vector<GgufPart> parts = file.parts();
  if (io::num_gguf_parts(file) > std::max<std::int64_t>(std::ssize(parts), 1)) {
    throw FormatError(
        file.name(), 0,
        fmt::format("it is one of {} parts; open the first by its path", io::num_gguf_parts(file)));
  }
  gguf = file;
  for (const auto& [tensor, stored] : file.tensors()) {
    add(tensor, {type_of_ggml(stored.type), io::ggml_type_name(stored.type), stored.shape,
                 stored.bytes, parts[stored.part].name, stored.offset});
  }
}

// Checks that every tensor is in the shard that the index names, and that the shards hold no
// others.
void Checkpoint::Files::check_shards(const std::map<std::string, std::string>& shard_of,
                                     const fs::path& folder, const fs::path& index) const {
  for (const auto& [tensor, shard] : shard_of) {
    const auto found = tensors.find(tensor);
    if (found != tensors.end() && found->second.file == (folder / shard).string()) continue;
    throw FormatError(
        index.string(), 0,
        fmt::format("tensor '{}' is not in '{}'", io::printable(tensor), io::printable(shard)));
  }
  for (const auto& [tensor, entry] : tensors) {
    if (shard_of.contains(tensor)) continue;
    throw FormatError(
        entry.file, entry.offset,
        fmt::format("tensor '{}' is not in '{}'", io::printable(tensor), index.string()));
  }
}

void Checkpoint::Files::add_shards(const fs::path& folder, const fs::path& index) {
  const std::string text = io::read_whole_file(index, "an index", kMaxIndexBytes);
  const auto shard_of = parse_checkpoint_index(text, index.string());
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : shard_of) shards.insert(shard);
  for (const std::string& shard : shards) add_safetensors(folder / shard);
  check_shards(shard_of, folder, index);
}

void Checkpoint::Files::add_folder(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder / kModelFile, error)) return add_safetensors(folder / kModelFile);
  if (fs::exists(folder / kIndexFile, error)) return add_shards(folder, folder / kIndexFile);
  throw IoError(fmt::format("cannot read '{}': it has neither {} nor {}", folder.string(),
                            kModelFile, kIndexFile));
}

Checkpoint::Checkpoint(std::shared_ptr<const Files> files) : files_(std::move(files)) {}

Checkpoint Checkpoint::open(const fs::path& path) {
  io::check_path("read", path);
  auto files = std::make_shared<Files>();
  files->name = path.string();
  std::error_code error;
  if (fs::is_directory(path, error)) {
    files->add_folder(path);
  } else if (is_gguf(path)) {
    files->add_gguf(GgufFile::open(path));
  } else {
    files->add_safetensors(path);
  }
  return Checkpoint(std::move(files));
}

Checkpoint Checkpoint::of(const GgufFile& file) {
  auto files = std::make_shared<Files>();
  files->name = file.name();
  files->add_gguf(file);
  return Checkpoint(std::move(files));
}

std::vector<std::string> Checkpoint::names() const {
  std::vector<std::string> names;
  names.reserve(files_->tensors.size());
  for (const auto& [name, entry] : files_->tensors) names.push_back(name);
  return names;
}

std::vector<TensorEntry> Checkpoint::entries() const {
  std::vector<TensorEntry> entries;
  entries.reserve(files_->tensors.size());
  for (const auto& [name, entry] : files_->tensors) {
    entries.push_back({name, entry.type_name, entry.type.has_value(), entry.shape.num_elements(),
                       std::ssize(entry.bytes)});
  }
  return entries;
}

bool Checkpoint::contains(std::string_view name) const { return files_->tensors.contains(name); }

StoredTensor Checkpoint::tensor(std::string_view name) const {
  const auto found = files_->tensors.find(name);
  if (found == files_->tensors.end()) {
    throw FormatError(
        files_->name, 0,
        fmt::format("none of the {} tensors is '{}'", files_->tensors.size(), io::printable(name)));
  }
  const Entry& entry = found->second;
  if (!entry.type) {
    throw FormatError(entry.file, entry.offset,
                      fmt::format("tensor '{}' is of type {}; read are {}", io::printable(name),
                                  entry.type_name, types_read()));
  }
  return {found->first, *entry.type, entry.shape, entry.bytes};
}

const std::string& Checkpoint::name() const { return files_->name; }

std::vector<CheckpointFile> Checkpoint::files() const {
  std::vector<CheckpointFile> files;
  if (files_->gguf) {
    for (const GgufPart& part : files_->gguf->parts()) files.push_back({part.name, part.bytes});
  }
  for (const auto& file : files_->mapped) files.push_back({file->name(), file->bytes()});
  return files;
}

std::optional<GgufFile> Checkpoint::gguf() const { return files_->gguf; }

}}}  // namespace heed::v0::models
