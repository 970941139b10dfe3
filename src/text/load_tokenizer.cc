#include <algorithm>
#include <span>
#include <string>
#include <system_error>

#include "heed/core/error.h"
#include "heed/text/tokenizer.h"
#include "io/byte_source.h"
#include "io/text_file.h"
#include "text/formats.h"

namespace heed { inline namespace v0 { namespace text {
namespace {

namespace fs = std::filesystem;

bool is_gguf(const fs::path& path) {
  io::FileSource file(path);
  std::string magic(static_cast<std::size_t>(std::min<std::int64_t>(file.size(), 4)), '\0');
  file.read(0, std::as_writable_bytes(std::span(magic)));
  return magic == "GGUF";
}

bool is_there(const fs::path& path) {
  // ignored: a file that cannot be examined cannot be read either, and that error says why
  std::error_code error;
  return fs::exists(path, error);
}

// Reads the configuration in the files that come with a tokenizer.
TokenizerConfig config_in(const fs::path& folder) {
  TokenizerConfig config;
  const fs::path path = folder / "tokenizer_config.json";
  if (is_there(path))
    config = parse_tokenizer_config(io::read_whole_file(path, "a tokenizer's configuration"),
                                    path.string());
  const fs::path jinja = folder / "chat_template.jinja";
  if (is_there(jinja)) config.chat_template = io::read_whole_file(jinja, "a chat template");
  return config;
}

}  // namespace

std::unique_ptr<const Tokenizer> load_tokenizer(const std::filesystem::path& path) {
  fs::path file = path;
  std::error_code error;
  if (fs::is_directory(path, error)) {
    file = path / "tokenizer.json";
    if (!is_there(file) && is_there(path / "vocab.txt")) file = path / "vocab.txt";
  }
  if (is_gguf(file)) return tokenizer_from_gguf(GgufFile::open(file));
  const TokenizerConfig config = config_in(file.parent_path());
  const std::string text = io::read_whole_file(file, "a tokenizer");
  return file.extension() == ".txt" ? tokenizer_from_vocabulary(text, file.string(), config)
                                    : tokenizer_from_json(text, file.string(), config);
}

}}}  // namespace heed::v0::text
