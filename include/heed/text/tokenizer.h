/// Tokenizers: one interface for every kind of conversion between text and token ids.
///
///     load_tokenizer(path)    tokenizers of trained models: BPE, Unigram, WordPiece
///     text::WordTokenizer     words of the texts it was built from, and bytes
///     text::Characters        the characters of a small language model
///     tasks::Vocabulary       the words or characters of a translator
///
/// Functions that read or write text accept any of them, as a `const text::Tokenizer&`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/config.h"

/// Tokenizers and their types.
namespace heed { inline namespace v0 { namespace text {

/// The bytes of a text that became a token: begin ≤ i < end. Empty for tokens without text, such as
/// [CLS].
struct TextRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  friend bool operator==(const TextRange&, const TextRange&) = default;
};

/// A text as token ids.
struct Encoding {
  std::vector<std::int64_t> ids;
  std::vector<TextRange> ranges;       ///< of the text, one for each id
  std::vector<std::int64_t> type_ids;  ///< 0, or 1 for the second text of a pair
};

/// How a text is encoded.
struct EncodeOptions {
  /// If true, adds the tokens that a model expects around a text, e.g. [CLS] and [SEP].
  bool add_special_tokens = true;
  /// If true, "<|im_end|>" in a text becomes the token of that name. Use false for untrusted texts,
  /// in which it is encoded as ordinary characters.
  bool parse_special_tokens = true;
};

/// How ids become a text.
struct DecodeOptions {
  bool skip_special_tokens = true;
};

/// The special tokens that a tokenizer knows by their roles.
struct SpecialTokens {
  std::optional<std::int64_t> begin = std::nullopt;      ///< bos, or [CLS]
  std::optional<std::int64_t> end = std::nullopt;        ///< eos, or [SEP]
  std::optional<std::int64_t> separator = std::nullopt;  ///< between the texts of a pair
  std::optional<std::int64_t> padding = std::nullopt;
  std::optional<std::int64_t> unknown = std::nullopt;
  std::optional<std::int64_t> mask = std::nullopt;
};

/// A message of a conversation, with its author's role.
struct ChatMessage {
  std::string role;  ///< "system", "developer", "user", "assistant", "tool", "function", "ipython"
  std::string content;
  /// The message as a JSON object, where it has more than a role and a text: "tool_calls", or a
  /// list of parts as its content. If not empty, role and content are read from it alone.
  std::string json{};
};

/// Options for the conversion of a conversation to text.
struct ChatOptions {
  /// If true, the text ends with the beginning of the assistant's answer. Templates that always end
  /// with it ignore this.
  bool add_generation_prompt = true;
  std::string tools{};      ///< functions that the model may call, as JSON; empty: none
  std::string variables{};  ///< a JSON object of other variables of the template; may be empty
};

/// An incremental decoder, which converts ids to text while a model generates them: see
/// Tokenizer::stream().
///
///     std::string text;
///     for (const std::int64_t id : ids) text += stream->add(id);
///     text += stream->finish();  // decode(ids)
class HEED_API DecodeStream {
 public:
  virtual ~DecodeStream();
  DecodeStream(const DecodeStream&) = delete;
  DecodeStream& operator=(const DecodeStream&) = delete;

  /// Adds an id and returns the text that is now final: later ids do not change it. It may be
  /// empty, for example for ids beyond those of a tokenizer from a file, and may end within a
  /// character.
  /// @throws InvalidArgument when decode() does for the id.
  virtual std::string add(std::int64_t id) = 0;
  /// Returns the rest of the text. No id may be added afterwards.
  virtual std::string finish() = 0;

 protected:
  DecodeStream() = default;
};

/// Splits texts into tokens and numbers them. Immutable: any number of threads may use one.
class HEED_API Tokenizer {
 public:
  virtual ~Tokenizer();

  /// The number of ids.
  virtual std::int64_t vocab_size() const = 0;
  /// @throws InvalidArgument when a text is not valid UTF-8, with the offset of the offending byte.
  virtual Encoding encode(std::string_view text, const EncodeOptions& options = {}) const = 0;
  /// Encodes two texts as one input, e.g. [CLS] a [SEP] b [SEP]. Ranges refer to the text of their
  /// token.
  /// @throws InvalidArgument as encode(), and when the tokenizer has no form for pairs.
  virtual Encoding encode_pair(std::string_view first, std::string_view second,
                               const EncodeOptions& options = {}) const;
  /// The text of ids; byte-level tokenizers return exactly the bytes, valid UTF-8 or not. @throws
  /// InvalidArgument when one is not in [0, vocab_size()); those of load_tokenizer() skip greater
  /// ids.
  virtual std::string decode(std::span<const std::int64_t> ids,
                             const DecodeOptions& options = {}) const = 0;
  /// An incremental decode(), whose time per id does not grow with the text. The pieces together
  /// are decode() of `context` and the ids, without the text of the context: " world" after
  /// "Hello". Where the ids change the text of the context, for example one that ends within a
  /// character, the pieces contain all of it that was not final. The tokenizer must outlive the
  /// stream.
  /// @throws InvalidArgument when an id of the context is not in [0, vocab_size()).
  virtual std::unique_ptr<DecodeStream> stream(std::span<const std::int64_t> context = {},
                                               const DecodeOptions& options = {}) const;
  /// The token as its file spells it: "##ing", "Ġthe".
  /// @throws InvalidArgument when id is not in [0, vocab_size()).
  virtual std::string token(std::int64_t id) const = 0;
  /// The token for display: "ing", "the". Control characters and bytes that are not UTF-8 become
  /// escapes. @throws InvalidArgument when id is not in [0, vocab_size()).
  virtual std::string label(std::int64_t id) const;
  /// The id of a token as its file spells it.
  virtual std::optional<std::int64_t> id(std::string_view token) const = 0;
  /// True if an id has no text, e.g. [CLS]. @throws InvalidArgument when the id does not exist.
  virtual bool is_special(std::int64_t id) const;
  virtual const SpecialTokens& special_tokens() const;

  /// The text of a conversation in the format that the model was trained on. When this text is
  /// encoded, parts of messages may become special tokens: use encode_chat() as the input of
  /// models.
  /// @throws InvalidArgument when the tokenizer has no template, there are no messages, one of them
  /// or an option is not as documented, or the template refuses them. @throws FormatError, which
  /// names the line, when the template is not valid or uses what heed does not know.
  virtual std::string apply_chat_template(std::span<const ChatMessage> messages,
                                          const ChatOptions& options = {}) const;
  /// The tokens of that text. Only special tokens of the template become special tokens; messages
  /// are untrusted texts, in which "<|im_end|>" is encoded as ordinary characters. No tokens are
  /// added around it, because the template contains the token that begins texts. @throws
  /// InvalidArgument as apply_chat_template().
  virtual Encoding encode_chat(std::span<const ChatMessage> messages,
                               const ChatOptions& options = {}) const;

  /// encode().ids. @throws InvalidArgument as encode().
  std::vector<std::int64_t> ids(std::string_view text, const EncodeOptions& options = {}) const;
  /// token() of each id. @throws InvalidArgument as token().
  std::vector<std::string> tokens(std::span<const std::int64_t> ids) const;
  /// label() of each id. @throws InvalidArgument as label().
  std::vector<std::string> labels(std::span<const std::int64_t> ids) const;

 protected:
  Tokenizer() = default;
  // Protected, so that a tokenizer is only copied as its own type.
  Tokenizer(const Tokenizer&) = default;
  Tokenizer(Tokenizer&&) = default;
  Tokenizer& operator=(const Tokenizer&) = default;
  Tokenizer& operator=(Tokenizer&&) = default;

  /// @throws InvalidArgument, in the name of `function`, when id is not in [0, vocab_size()).
  void check_id(const char* function, std::int64_t id) const;
};

/// Loads the tokenizer of a folder as transformers saves it (tokenizer.json, or vocab.txt with
/// tokenizer_config.json), of such a file, or of a GGUF file.
/// @throws FormatError naming the file and the problem, or the part (normaliser, pre-tokenizer,
/// model, post-processor, decoder) that heed does not support; IoError.
HEED_API std::unique_ptr<const Tokenizer> load_tokenizer(const std::filesystem::path& path);

}}}  // namespace heed::v0::text
