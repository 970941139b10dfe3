#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "heed/core/error.h"
#include "io/io_test_util.h"
#include "text/made_tokenizers.h"

namespace heed { namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::bert_json;
using testing_support::byte_level_json;
using testing_support::tokens_of;

class LoadTokenizer : public IoTest {
 protected:
  std::filesystem::path folder() const { return path("."); }
};

TEST_F(LoadTokenizer, ReadsAFolderOrAFile) {
  write_text(path("tokenizer.json"), bert_json());
  for (const auto& place : {folder(), path("tokenizer.json")}) {
    EXPECT_THAT(tokens_of(*text::load_tokenizer(place), "cats"),
                ElementsAre("[CLS]", "cat", "##s", "[SEP]"));
  }
}

TEST_F(LoadTokenizer, ConfigurationNamesRolesAndTheTemplate) {
  write_text(path("tokenizer.json"), byte_level_json());
  write_text(path("tokenizer_config.json"),
             R"({"eos_token": {"content": "<|end|>"}, "pad_token": "the", "bos_token": null,
                 "chat_template": "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"})");
  const auto tokenizer = text::load_tokenizer(folder());
  EXPECT_EQ(tokenizer->special_tokens().end, 262);
  EXPECT_EQ(tokenizer->special_tokens().padding, 257);
  EXPECT_EQ(tokenizer->special_tokens().begin, std::nullopt);
  const std::vector<text::ChatMessage> messages{{"user", "Hi"}};
  EXPECT_THAT(tokenizer->apply_chat_template(messages), HasSubstr("<|im_start|>user\nHi"));
  write_text(path("chat_template.jinja"), "{% oops %}");
  EXPECT_THAT([&] { (void)text::load_tokenizer(folder())->apply_chat_template(messages); },
              ThrowsMessage<FormatError>(HasSubstr("line 1: the tag 'oops'")));
}

TEST_F(LoadTokenizer, ReadsTheVocabularyOfBert) {
  write_text(path("vocab.txt"), "[PAD]\n[UNK]\n[CLS]\r\n[SEP]\nthe\nThe\n##s\n");
  EXPECT_THAT(tokens_of(*text::load_tokenizer(folder()), "The the's"),
              ElementsAre("[CLS]", "the", "the", "[UNK]", "[UNK]", "[SEP]"));
  write_text(path("tokenizer_config.json"), R"({"do_lower_case": false})");
  EXPECT_THAT(tokens_of(*text::load_tokenizer(path("vocab.txt")), "The thes"),
              ElementsAre("[CLS]", "The", "the", "##s", "[SEP]"));
  const auto pair = text::load_tokenizer(folder())->encode_pair("the", "The");
  EXPECT_THAT(pair.ids, ElementsAre(2, 4, 3, 5, 3));
  EXPECT_THAT(pair.type_ids, ElementsAre(0, 0, 0, 1, 1));
}

TEST_F(LoadTokenizer, NamesTheFileThatIsWrong) {
  EXPECT_THAT([&] { text::load_tokenizer(folder()); },
              ThrowsMessage<IoError>(HasSubstr("tokenizer.json': No such file or directory")));
  write_text(path("vocab.txt"), "[UNK]\n[CLS]\nthe\n");
  EXPECT_THAT([&] { text::load_tokenizer(folder()); },
              ThrowsMessage<FormatError>(HasSubstr("the token '[SEP]' is missing")));
  write_text(path("vocab.txt"), "[UNK]\n[CLS]\n[SEP]\nthe\nthe\n");
  EXPECT_THAT([&] { text::load_tokenizer(folder()); },
              ThrowsMessage<FormatError>(HasSubstr("the token 'the' has two ids, 3 and 4")));
  write_text(path("vocab.txt"), "[UNK]\n\xFF");
  EXPECT_THAT([&] { text::load_tokenizer(folder()); },
              ThrowsMessage<FormatError>(HasSubstr("at byte 6: not valid UTF-8")));
  write_text(path("tokenizer_config.json"), R"({"tokenizer_class": "T5Tokenizer"})");
  EXPECT_THAT([&] { text::load_tokenizer(folder()); },
              ThrowsMessage<FormatError>(HasSubstr("names the class 'T5Tokenizer', expected")));
  write_text(path("tokenizer_config.json"), "{");
  EXPECT_THAT([&] { text::load_tokenizer(folder()); },
              ThrowsMessage<FormatError>(HasSubstr("tokenizer_config.json: at byte ")));
}

}  // namespace
}  // namespace heed
