/// Text to the token ids of a model and back: one interface for every kind of tokenizer.
///
///     load_tokenizer(path)    those that models were trained with: BPE and WordPiece
///     text::WordTokenizer     words of the texts it was built from, and bytes
///     text::Characters        the characters of a small language model
///     tasks::Vocabulary       the words or characters of a translator
///
/// What reads or writes text takes any of them, as a `const text::Tokenizer&`.
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

/// Tokenizers and what goes with them.
namespace heed { inline namespace v0 { namespace text {

/// The bytes of a text that became a token: begin ≤ i < end. Empty for tokens that stand for no
/// text, such as [CLS].
struct TextRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  friend bool operator==(const TextRange&, const TextRange&) = default;
};

/// A text as a model reads it.
struct Encoding {
  std::vector<std::int64_t> ids;
  std::vector<TextRange> ranges;       ///< of the text, one for each id
  std::vector<std::int64_t> type_ids;  ///< 0, or 1 for the second text of a pair
};

/// How a text is encoded.
struct EncodeOptions {
  /// Whether the tokens that a model expects around a text are added, e.g. [CLS] and [SEP].
  bool add_special_tokens = true;
  /// Whether "<|im_end|>" in a text is the token of that name. Texts of strangers want false: they
  /// are then encoded as any other characters.
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

/// Who says what in a conversation.
struct ChatMessage {
  std::string role;  ///< "system", "user" or "assistant"
  std::string content;
};

/// How a conversation becomes a text.
struct ChatOptions {
  /// Whether the beginning of the assistant's answer stands at its end. Templates that end with it
  /// in any case keep it.
  bool add_generation_prompt = true;
};

/// Ids that become a text one by one, while a model writes them: Tokenizer::stream() makes it.
///
///     std::string text;
///     for (const std::int64_t id : ids) text += stream->add(id);
///     text += stream->finish();  // decode(ids)
class HEED_API DecodeStream {
 public:
  virtual ~DecodeStream();
  DecodeStream(const DecodeStream&) = delete;
  DecodeStream& operator=(const DecodeStream&) = delete;

  /// What is certain of the text with this id and was not before: no id that follows changes it.
  /// It may be nothing, as for ids beyond those of a tokenizer from a file, and end in a character.
  /// @throws InvalidArgument when decode() does for the id.
  virtual std::string add(std::int64_t id) = 0;
  /// The rest of the text. No id may be added afterwards.
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
  /// Two texts as one input, e.g. [CLS] a [SEP] b [SEP]. Ranges are of the text they belong to.
  /// @throws InvalidArgument as encode(), and when the tokenizer has no form for pairs.
  virtual Encoding encode_pair(std::string_view first, std::string_view second,
                               const EncodeOptions& options = {}) const;
  /// The text of ids, of byte-level tokenizers exactly the bytes, valid UTF-8 or not. @throws
  /// InvalidArgument when one is not in [0, vocab_size()); load_tokenizer()'s skip greater ones.
  virtual std::string decode(std::span<const std::int64_t> ids,
                             const DecodeOptions& options = {}) const = 0;
  /// decode() one id at a time, in a time that does not grow with the text: together what decode()
  /// gives of `context` and the ids, without that of the context: " world" after "Hello". Where the
  /// ids change what the context became, as one that ends within a character, it is all that was
  /// not certain of it. The tokenizer must outlive the stream.
  /// @throws InvalidArgument when an id of the context is not in [0, vocab_size()).
  virtual std::unique_ptr<DecodeStream> stream(std::span<const std::int64_t> context = {},
                                               const DecodeOptions& options = {}) const;
  /// The token as its file writes it: "##ing", "Ġthe".
  /// @throws InvalidArgument when id is not in [0, vocab_size()).
  virtual std::string token(std::int64_t id) const = 0;
  /// The token as people should see it: "ing", "the". Control characters and bytes that are not
  /// UTF-8 as escapes. @throws InvalidArgument when id is not in [0, vocab_size()).
  virtual std::string label(std::int64_t id) const;
  /// The id of a token as its file writes it.
  virtual std::optional<std::int64_t> id(std::string_view token) const = 0;
  /// Whether an id stands for no text, e.g. [CLS]. @throws InvalidArgument when there is no such
  /// id.
  virtual bool is_special(std::int64_t id) const;
  virtual const SpecialTokens& special_tokens() const;

  /// A conversation as the text that the model was trained on. Encoded as a text, what a message
  /// says may become special tokens: encode_chat() is for models.
  /// @throws InvalidArgument when the tokenizer has no template, or one that heed does not know, or
  /// there are no messages, or one has a role that the template refuses.
  virtual std::string apply_chat_template(std::span<const ChatMessage> messages,
                                          const ChatOptions& options = {}) const;
  /// The tokens of that text. Those of the template are special tokens, the messages are texts of
  /// strangers: "<|im_end|>" in one is encoded as any other characters. Nothing is put around it,
  /// for the template has the token that begins texts. @throws InvalidArgument as
  /// apply_chat_template().
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
  // Copied as what they are, never as a tokenizer of unknown kind.
  Tokenizer(const Tokenizer&) = default;
  Tokenizer(Tokenizer&&) = default;
  Tokenizer& operator=(const Tokenizer&) = default;
  Tokenizer& operator=(Tokenizer&&) = default;

  /// @throws InvalidArgument, in the name of `function`, when id is not in [0, vocab_size()).
  void check_id(const char* function, std::int64_t id) const;
};

/// The tokenizer of a folder as transformers saves it (tokenizer.json, or vocab.txt with
/// tokenizer_config.json), of such a file, or of a GGUF file.
/// @throws FormatError naming the file and what is wrong, or which part (normaliser, pre-tokenizer,
/// model, post-processor, decoder) heed does not know; IoError.
HEED_API std::unique_ptr<const Tokenizer> load_tokenizer(const std::filesystem::path& path);

}}}  // namespace heed::v0::text
