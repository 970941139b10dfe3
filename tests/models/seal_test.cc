#include "heed/models/seal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "heed/core/error.h"

namespace heed { namespace {

using models::parse_seal;
using testing::HasSubstr;
using testing::ThrowsMessage;

// Seals whose last part fits what stands before it, so that the other parts are read.
std::string with_check(const std::string& text) {
  try {
    parse_seal(text + ":AAAA");
  } catch (const InvalidArgument& error) {
    const std::string message = error.what();
    const std::size_t place = message.find("expected '");
    return text + ':' + (place == std::string::npos ? "AAAA" : message.substr(place + 10, 4));
  }
  return text + ":AAAA";
}

TEST(SealText, ThatIsNoSealIsRefused) {
  const auto refused = [](const std::string& text, const std::string& problem) {
    EXPECT_THAT([&] { parse_seal(text); }, ThrowsMessage<InvalidArgument>(HasSubstr(problem)))
        << text.substr(0, 100);
  };
  const std::string model = "0123456789abcdef";
  const std::string begin = "heed1:generate:" + model + ":01234567:n=3,t=0.5:89abcdef:";
  const std::string all(22, 'x');
  const std::string good = with_check(begin + "AAbb-_:" + all);
  EXPECT_EQ(parse_seal(good).steps, "AAbb-_");
  EXPECT_EQ(parse_seal(with_check(begin + ':' + all)).steps, "");
  refused("", "it is empty");
  refused(" \n", "it is empty");
  refused("hello", "it begins with 'hello', expected 'heed1:'");
  refused("heed2:generate:x", "it is of version 2, expected 1");
  refused("\x1b[2J:", "it begins with '?[2J'");
  refused("heed1", "it has 1 parts between colons, expected 9: was it cut off?");
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_THROW(parse_seal(good.substr(0, size)), InvalidArgument) << size;
    std::string changed = good;
    changed[size] = changed[size] == '0' ? '1' : '0';
    EXPECT_THROW(parse_seal(changed), InvalidArgument) << size;
  }
  refused(begin + "AAbb-_:" + all + ":AAAA", "characters were changed, or are missing");
  const auto refused_part = [&](const std::string& text, const std::string& problem) {
    refused(with_check(text), problem);
  };
  refused_part("heed1:write:" + model + ":01234567::89abcdef::" + all, "it is of 'write'");
  refused_part("heed1:embed:0123:01234567::89abcdef::" + all,
               "the part model is '0123', expected 16 digits");
  refused_part("heed1:embed:" + model + ":0123456G::89abcdef::" + all, "the part input is");
  refused_part("heed1:embed:" + model + ":01234567:n=3:89abcdef::" + all,
               "the option 'n' that heed does not know");
  refused_part("heed1:generate:" + model + ":01234567:t=1,n=3:89abcdef::" + all,
               "the option 'n' twice or out of order");
  refused_part("heed1:generate:" + model + ":01234567:n=1,n=3:89abcdef::" + all,
               "the option 'n' twice");
  refused_part("heed1:generate:" + model + ":01234567:n:89abcdef::" + all, "the option n is ''");
  refused_part("heed1:generate:" + model + ":01234567:n=3,:89abcdef::" + all, "the option ''");
  refused_part(
      "heed1:generate:" + model + ":01234567:n=" + std::string(65, '1') + ":89abcdef::" + all,
      "expected 1 to 64 letters");
  refused_part("heed1:generate:" + model + ":01234567::89ABCDEF::" + all, "the part output is");
  refused_part(begin + "AAb:" + all, "the part steps has 3 characters, expected an even number");
  refused_part(begin + "AA+b:" + all, "the part steps has the character '+'");
  refused_part(begin + "AAbb:" + all + 'x', "the part all has 23 characters, expected 22");
  refused(std::string(30'000'000, 'A'), "it has 30000000 bytes, expected at most");
}

}  // namespace
}  // namespace heed
