#include "heed/viz/terminal.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>

#include "support/refusal.h"

namespace heed { namespace {

using testing::ThrowsMessage;
using testing_support::Refuses;

// A terminal of 100 columns, in an environment without any of the variables.
class DetectTerminal : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name :
         {"NO_COLOR", "TERM", "COLORTERM", "COLUMNS", "LC_ALL", "LC_CTYPE", "LANG"}) {
      const char* value = std::getenv(name);
      saved_[name] = value == nullptr ? std::nullopt : std::optional<std::string>(value);
      unsetenv(name);
    }
    master_ = posix_openpt(O_RDWR | O_NOCTTY);
    if (master_ < 0 || grantpt(master_) != 0 || unlockpt(master_) != 0) {
      GTEST_SKIP() << "no pseudo-terminal here";
    }
    terminal_ = open(ptsname(master_), O_RDWR | O_NOCTTY);
    winsize size{};
    size.ws_col = 100;
    size.ws_row = 40;
    if (terminal_ < 0 || ioctl(terminal_, TIOCSWINSZ, &size) != 0) {
      GTEST_SKIP() << "no pseudo-terminal here";
    }
  }

  void TearDown() override {
    if (terminal_ >= 0) close(terminal_);
    if (master_ >= 0) close(master_);
    for (const auto& [name, value] : saved_) {
      if (value) {
        setenv(name.c_str(), value->c_str(), 1);
      } else {
        unsetenv(name.c_str());
      }
    }
  }

  ColorDepth depth_with(const char* term, const char* color_term) {
    setenv("TERM", term, 1);
    setenv("COLORTERM", color_term, 1);
    return detect_terminal(terminal_).depth;
  }

  int terminal_ = -1;

 private:
  int master_ = -1;
  std::map<std::string, std::optional<std::string>> saved_;
};

TEST_F(DetectTerminal, FindsTheColors) {
  EXPECT_EQ(detect_terminal(terminal_).depth, ColorDepth::kPlain);
  EXPECT_EQ(depth_with("xterm", ""), ColorDepth::kPlain);
  EXPECT_EQ(depth_with("xterm-256color", ""), ColorDepth::k256);
  EXPECT_EQ(depth_with("xterm-256color", "truecolor"), ColorDepth::kTrueColor);
  EXPECT_EQ(depth_with("xterm", "24bit"), ColorDepth::kTrueColor);
  EXPECT_EQ(depth_with("dumb", "truecolor"), ColorDepth::kPlain);
  setenv("NO_COLOR", "", 1);
  EXPECT_EQ(depth_with("xterm", "truecolor"), ColorDepth::kTrueColor) << "an empty NO_COLOR";
  setenv("NO_COLOR", "1", 1);
  EXPECT_EQ(depth_with("xterm", "truecolor"), ColorDepth::kPlain);
}

TEST_F(DetectTerminal, FindsTheWidth) {
  EXPECT_EQ(detect_terminal(terminal_).width, 100);
  setenv("COLUMNS", "64", 1);
  EXPECT_EQ(detect_terminal(terminal_).width, 64);
  setenv("COLUMNS", "-5", 1);
  EXPECT_EQ(detect_terminal(terminal_).width, 100);
  setenv("COLUMNS", "99999999999999999999", 1);
  EXPECT_EQ(detect_terminal(terminal_).width, 100);
}

TEST_F(DetectTerminal, AFileIsPlain) {
  setenv("TERM", "xterm-256color", 1);
  setenv("COLORTERM", "truecolor", 1);
  const int file = open("/dev/null", O_RDWR);
  const TerminalStyle style = detect_terminal(file);
  close(file);
  EXPECT_EQ(style.depth, ColorDepth::kPlain);
  EXPECT_EQ(style.width, 80);
  EXPECT_EQ(detect_terminal(-1).depth, ColorDepth::kPlain);
}

TEST_F(DetectTerminal, FindsTheCharacterSet) {
  EXPECT_TRUE(detect_terminal(terminal_).utf8);
  setenv("LANG", "de_DE.ISO-8859-1@euro", 1);
  EXPECT_FALSE(detect_terminal(terminal_).utf8);
  setenv("LC_CTYPE", "en_GB.utf8", 1);
  EXPECT_TRUE(detect_terminal(terminal_).utf8);
  setenv("LC_ALL", "ja_JP.EUC-JP", 1);
  EXPECT_FALSE(detect_terminal(terminal_).utf8);
}

TEST(SanitizeForTerminal, LeavesNothingToObey) {
  EXPECT_EQ(sanitize_for_terminal("\x1B]0;title\a"), "\\x1B]0;title\\x07");
  EXPECT_EQ(sanitize_for_terminal("naïve 猫"), "naïve 猫");
}

TEST(RenderMatrix, AlignsNumbers) {
  const Tensor<float> matrix({2, 3}, {0.28F, 0.32F, 0.4F, -1, NAN, INFINITY});
  EXPECT_EQ(render_matrix(matrix, {2, {}}),
            "[ 0.28  0.32  0.40]\n"
            "[-1.00   nan   inf]\n");
  const std::vector<std::string> labels{"猫", "the\n"};
  EXPECT_EQ(render_matrix(matrix, {0, labels}),
            "猫    [   0    0    0]\n"
            "the\\n [  -1  nan  inf]\n");
}

TEST(RenderMatrix, ShowsNoSignOfNan) {
  EXPECT_EQ(render_matrix(Tensor<double>({2}, {-std::nan(""), std::nan("")}), {2, {}}),
            "[ nan  nan]\n");
}

TEST(RenderMatrix, TakesVectorsDoublesAndViews) {
  EXPECT_EQ(render_matrix(Tensor<double>({2}, {1.0, -123.25})), "[   1.0000 -123.2500]\n");
  const Tensor<double> matrix({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(render_matrix(matrix.view().permute({1, 0}), {0, {}}), "[ 1  3]\n[ 2  4]\n");
  EXPECT_EQ(render_matrix(Tensor<float>(Shape{2, 0})), "[]\n[]\n");
  EXPECT_EQ(render_matrix(Tensor<float>(Shape{0, 2})), "");
}

TEST(RenderMatrix, RefusesWhatItCannotWrite) {
  EXPECT_THAT([] { render_matrix(Tensor<float>(Shape{2, 2, 2})); }, Refuses("shape", "[2, 2, 2]"));
  EXPECT_THAT(([] {
                render_matrix(Tensor<float>(Shape{2}), {18, {}});
              }),
              Refuses("decimals", "18"));
  const std::vector<std::string> labels{"a"};
  EXPECT_THAT(([&] {
                render_matrix(Tensor<float>(Shape{2, 2}), {2, labels});
              }),
              ThrowsMessage<InvalidArgument>("render_matrix: 1 row labels were given for 2 rows"));
}

}  // namespace
}  // namespace heed
