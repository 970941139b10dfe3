#include "io/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "heed/core/error.h"
#include "io/io_test_util.h"

namespace heed::io { namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

class TextFile : public IoTest {};

TEST_F(TextFile, IsReadWhole) {
  const std::string text("a\0b\r\n", 5);
  write_text(path("text"), text);
  EXPECT_EQ(read_text_file(path("text")), text);
  EXPECT_EQ(read_whole_file(path("text"), "a text"), text);
  EXPECT_EQ(read_whole_file(path("text"), "a text", 5), text);
  write_text(path("empty"), "");
  EXPECT_EQ(read_whole_file(path("empty"), "a text"), "");
}

TEST_F(TextFile, IsNotLongerThanItsKind) {
  write_text(path("text"), "12345");
  EXPECT_THAT([&] { read_whole_file(path("text"), "an index", 4); },
              ThrowsMessage<FormatError>(
                  AllOf(HasSubstr(path("text").string()),
                        HasSubstr("the file has 5 bytes, expected an index of at most 4"))));
}

TEST_F(TextFile, OfAModelIsARegularFile) {
  EXPECT_THROW(read_whole_file(path("none"), "a text"), IoError);
  EXPECT_THROW(read_whole_file(path("."), "a text"), IoError);
}

}  // namespace
}  // namespace heed::io
