// A tokenizer built from parts, as files describe them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "heed/text/tokenizer.h"
#include "text/added_tokens.h"
#include "text/chat_template.h"
#include "text/decoders.h"
#include "text/framing.h"
#include "text/model.h"
#include "text/normalizers.h"
#include "text/pre_tokenizers.h"
#include "text/token_table.h"

namespace heed { inline namespace v0 { namespace text {

// An empty function does nothing.
struct PipelineParts {
  std::unique_ptr<const TokenTable> tokens;
  std::unique_ptr<const Model> model;
  std::vector<AddedToken> added;
  std::vector<std::int64_t> silent;  // tokens that decode to nothing
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  Framing framing;
  Decoder decoder = spacing_decoder();
  std::string continuing_prefix;  // "##" of WordPiece, which labels leave out
  SpecialTokens special;
  ChatTemplate chat;
};

std::unique_ptr<const Tokenizer> make_pipeline(PipelineParts parts);

}}}  // namespace heed::v0::text
