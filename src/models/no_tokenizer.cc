#include "models/no_tokenizer.h"

#include <fmt/format.h>

#include <utility>

#include "heed/core/error.h"

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

}  // namespace

std::unique_ptr<const text::Tokenizer> no_tokenizer(std::string folder) {
  return std::make_unique<NoTokenizer>(std::move(folder));
}

}}}  // namespace heed::v0::models
