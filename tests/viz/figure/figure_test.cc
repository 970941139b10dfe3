#include "heed/viz/figure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>

#include "heed/core/error.h"
#include "support/places.h"
#include "support/refusal.h"
#include "viz/explorer/page.h"
#include "viz/figure/golden_versions.h"
#include "viz/figure/layout.h"
#include "viz/figure/sample_figures.h"
#include "viz/figure/scales.h"
#include "viz/figure/svg.h"
#include "viz/figure/text.h"

namespace heed { namespace {

using figure::Size;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using testing::ThrowsMessage;
using testing_support::Message;
using testing_support::sample_weights;

constexpr FigureFormat kFormats[] = {FigureFormat::kPng, FigureFormat::kSvg, FigureFormat::kPdf};

std::string read(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// To write the files again: HEED_WRITE_GOLDEN=1 heed_tests --gtest_filter='Figure.*Golden*'
void expect_golden(const std::string& name, const Figure& figure) {
  const std::string path = testing_support::test_data() + "/figures/" + name + ".svg";
  const std::string svg = render_figure(figure, FigureFormat::kSvg);
  if (std::getenv("HEED_WRITE_GOLDEN") != nullptr) std::ofstream(path, std::ios::binary) << svg;
  EXPECT_TRUE(svg == read(path)) << name << " differs from its golden file";
}

TEST(Figure, SvgIsTheGoldenOne) {
  if (testing_support::drawing_versions() != testing_support::kGoldenVersions) {
    GTEST_SKIP() << "the golden files are of " << testing_support::kGoldenVersions << ", here are "
                 << testing_support::drawing_versions();
  }
  expect_golden("weights", sample_weights());
  expect_golden("weights-dark", sample_weights(Theme::kDark));
  expect_golden("mask", testing_support::sample_mask());
  expect_golden("curves", testing_support::sample_curves());
  expect_golden("bars", testing_support::sample_bars());
  expect_golden("positions", testing_support::sample_positions());
}

TEST(Figure, TheEndingChoosesTheFormat) {
  EXPECT_EQ(figure_format("a.png"), FigureFormat::kPng);
  EXPECT_EQ(figure_format("a.b.SVG"), FigureFormat::kSvg);
  EXPECT_EQ(figure_format("folder.x/a.pdf"), FigureFormat::kPdf);
  EXPECT_THAT([] { figure_format("picture.gif"); },
              ThrowsMessage<InvalidArgument>(
                  HasSubstr("'picture.gif' does not end in .png, .svg or .pdf")));
}

TEST(Figure, EachFormatStartsAsItsFilesDo) {
  const Figure figure = sample_weights();
  EXPECT_THAT(render_figure(figure, FigureFormat::kPng), StartsWith("\x89PNG\r\n"));
  EXPECT_THAT(render_figure(figure, FigureFormat::kSvg), StartsWith("<?xml"));
  EXPECT_THAT(render_figure(figure, FigureFormat::kPdf), StartsWith("%PDF-"));
}

TEST(Figure, SameFigureSameBytesWhateverWasDrawnBefore) {
  for (const FigureFormat format : kFormats) {
    const std::string first = render_figure(sample_weights(), format);
    render_figure(testing_support::sample_positions(), format);
    EXPECT_TRUE(render_figure(sample_weights(), format) == first);
  }
}

TEST(Figure, ATitleOfAPanelIsNeverCut) {
  const figure::Fonts fonts;
  Figure figure = sample_weights();
  figure.columns = 2;
  figure.panels.push_back(figure.panels[0]);
  for (Panel& panel : figure.panels) panel.title = "One line.";
  const auto one = figure::plan_figure(figure, fonts);
  figure.panels[0].title =
      "Weights of a head, softmax of each row of the scores that a mask let through";
  const auto several = figure::plan_figure(figure, fonts);
  const Size title =
      fonts.size(figure.panels[0].title, figure::panel_title_style(figure.panels[0]));
  EXPECT_GT(title.height, 30);
  EXPECT_GT(several.size.height, one.size.height);
  EXPECT_GE(several.panels[0].plot.y - several.title.height, title.height);
  // Adjacent titles do not overlap and stay within the picture.
  const double middle = several.panels[0].plot.center().x;
  EXPECT_GE(middle - title.width / 2, 0);
  EXPECT_LE(middle + title.width / 2, several.panels[1].plot.x);
}

TEST(Figure, TitlesOfARowStandAtOneHeightWhateverTheLegends) {
  const figure::Fonts fonts;
  Figure figure = testing_support::sample_curves();
  figure.columns = 2;
  figure.panels.push_back(figure.panels[0]);
  for (Panel& panel : figure.panels) panel.title = "One line.";
  const auto same = figure::plan_figure(figure, fonts);
  figure.panels[1].curves.resize(1);
  figure.panels[1].curves[0].name.clear();
  const auto plan = figure::plan_figure(figure, fonts);
  EXPECT_GT(plan.panels[0].legend.size(), plan.panels[1].legend.size());
  for (const std::size_t i : {0U, 1U}) {
    EXPECT_EQ(plan.panels[i].legend_height, same.panels[0].legend_height);
    EXPECT_EQ(plan.panels[i].plot.y, same.panels[0].plot.y);
  }
  EXPECT_EQ(plan.size.height, same.size.height);
}

TEST(Figure, NamesAtEndsStandWhereTheCurvesEnd) {
  const figure::Fonts fonts;
  Figure figure = testing_support::sample_curves();
  Panel& panel = figure.panels[0];
  panel.curves[1].x.push_back(512);
  panel.curves[1].y.push_back(std::numeric_limits<double>::quiet_NaN());
  const auto with_legend = figure::plan_figure(figure, fonts);
  EXPECT_TRUE(with_legend.panels[0].end_names.empty());
  panel.has_names_at_ends = true;
  const auto plan = figure::plan_figure(figure, fonts);
  const figure::PanelPlan& found = plan.panels[0];
  EXPECT_TRUE(found.legend.empty());
  EXPECT_LT(plan.size.height, with_legend.size.height);
  ASSERT_EQ(found.end_names.size(), 2U);
  EXPECT_EQ(found.end_names[0].name, "n²");
  EXPECT_EQ(found.end_names[1].name, "n");
  for (const std::size_t i : {0U, 1U}) {
    const double last = panel.curves[i].y[2];
    EXPECT_NEAR(found.end_names[i].y, (1 - figure::place(panel.y, last)) * panel.height, 1e-9);
  }
  panel.curves[0].name = "a name that needs room";
  const auto wider = figure::plan_figure(figure, fonts);
  const double name = fonts.size(panel.curves[0].name, figure::end_name_style()).width;
  EXPECT_GT(wider.size.width, plan.size.width);
  EXPECT_GT(wider.size.width - wider.panels[0].plot.right(), name);
  EXPECT_FALSE(render_figure(figure, FigureFormat::kSvg) ==
               render_figure(testing_support::sample_curves(), FigureFormat::kSvg));
}

TEST(Figure, NamesAtEndsKeepApartAndWithinThePlot) {
  const figure::Fonts fonts;
  Figure figure = testing_support::sample_curves();
  Panel& panel = figure.panels[0];
  panel.has_names_at_ends = true;
  for (const double end : {panel.y.low, 1e9, 300.0}) {
    for (const char* name : {"a", "", "b", "c", "d"}) {
      panel.curves.push_back({name, {16, 256}, {16, end}});
    }
    const auto names = figure::plan_figure(figure, fonts).panels[0].end_names;
    for (std::size_t i = 0; i < names.size(); ++i) {
      EXPECT_GE(names[i].y, i == 0 ? 0 : names[i - 1].y + 14) << names[i].name;
      EXPECT_LE(names[i].y, panel.height) << names[i].name;
    }
  }
  EXPECT_EQ(figure::plan_figure(figure, fonts).panels[0].end_names.size(), 14U);
}

TEST(Figure, SvgHasTheTitleForReadersWhoHearIt) {
  EXPECT_THAT(render_figure(sample_weights(), FigureFormat::kSvg),
              HasSubstr("<title>Three &lt;words&gt; &amp; a mask</title>"));
}

TEST(Figure, HostileTextIsNeitherMarkupNorObeyed) {
  Figure figure = sample_weights();
  figure.title = "</title><script>alert(1)</script><span size='99999'>\x1b[2J\xff\u202e";
  figure.note = std::string(2'000'000, 'x') + std::string("\0\n", 2);
  figure.panels[0].title = "<image href='file:///etc/passwd'/>";
  figure.panels[0].x.ticks[0].label = std::string(100'000, 'W');
  figure.panels[0].y.ticks[0].label = "👩‍👩‍👧 猫 שלום \u0301";
  for (const FigureFormat format : kFormats) {
    EXPECT_THAT(render_figure(figure, format),
                AllOf(Not(HasSubstr("<script")), Not(HasSubstr("passwd"))));
  }
}

TEST(Figure, TextIsShownAsItIs) {
  EXPECT_EQ(figure::drawable("<b>&amp;"), "<b>&amp;");
  EXPECT_EQ(figure::drawable("a\n\x1b"), "a\\n\\x1B");
  EXPECT_EQ(figure::drawable("\u202e"), "\\u{202E}");
  EXPECT_LT(figure::drawable(std::string(1'000'000, 'x')).size(), 1000);
}

TEST(Figure, SvgNamesAreNumberedFromTheStart) {
  EXPECT_EQ(figure::with_stable_names(
                R"x(<g id="surface17"/><use href="#surface17"/><g id="x" clip="url(#clip9)"/>)x"),
            R"x(<g id="d1"/><use href="#d1"/><g id="d2" clip="url(#d3)"/>)x");
}

TEST(Figure, SvgIsWrittenShort) {
  EXPECT_EQ(
      figure::compacted(
          R"(<g style=" stroke:none; fill-opacity:1;fill:rgb(12.549%,50.196078%,100%);stroke-width:1.23456;"/>)"),
      R"(<g style="fill:#2080ff;stroke-width:1.234;"/>)");
  EXPECT_EQ(figure::compacted(R"x(<use fill="rgb(100%,0%,0%)" stroke="rgb(x)" x="1.50000"/>)x"),
            R"x(<use fill="#ff0000" stroke="rgb(x)" x="1.5"/>)x");
  EXPECT_EQ(figure::compacted(R"(<path d="M 1 2.3456 L -3 4.5 Z M 5 6 L 0.704 7.001 Z M 5 6 "/>)"),
            R"(<path d="M1 2.34L-3 4.5ZM5 6L0.7 7Z"/>)");
  EXPECT_EQ(figure::compacted(R"(<path d=""/><path d="M 1 2 ")"), R"(<path d=""/><path d="M1 2")");
}

TEST(Figure, SvgIsShortenedOnlyWhereNumbersAre) {
  const std::string header =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" "
      "version=\"1.10\" id=\"a1.2345\">1.2345<image href=\"data:;base64,A1.2345\"/></svg>";
  EXPECT_EQ(figure::compacted(header), header);
  EXPECT_EQ(figure::compacted(R"(<a b="1.23)"), R"(<a b="1.23)");
}

// Without these a browser shows an error instead of the picture. tests/browser/test_gallery.py
// opens pictures in a browser.
TEST(Figure, SvgIsXmlOfTheRightNamespace) {
  const auto check = [](const std::string& file) {
    const std::string svg = file.substr(0, 400);
    EXPECT_THAT(svg, StartsWith("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg "));
    EXPECT_THAT(svg, HasSubstr(" xmlns=\"http://www.w3.org/2000/svg\""));
    EXPECT_THAT(svg, HasSubstr(" xmlns:xlink=\"http://www.w3.org/1999/xlink\""));
    EXPECT_THAT(svg, HasSubstr(" version=\"1.1\""));
  };
  check(render_figure(sample_weights(), FigureFormat::kSvg));
  check(render_figure(testing_support::sample_positions(), FigureFormat::kSvg));
  std::size_t files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(testing_support::test_data() + "/figures")) {
    if (entry.path().extension() != ".svg") continue;
    check(read(entry.path().string()));
    ++files;
  }
  EXPECT_GE(files, 6U);
}

TEST(Figure, SvgHasNoStyleAttributes) {
  EXPECT_EQ(figure::without_styles(R"(<g style=""><a style=" fill:none;stroke:#fff" b="c"/></g>)"),
            R"(<g><a fill="none" stroke="#fff" b="c"/></g>)");
  EXPECT_THAT(render_figure(sample_weights(), FigureFormat::kSvg), Not(HasSubstr("style=")));
}

TEST(Figure, APageHasThePictureAndItsNumbers) {
  const std::string page = figure_page(sample_weights());
  EXPECT_THAT(page,
              AllOf(HasSubstr("<title>Three &lt;words&gt; &amp; a mask</title>"),
                    HasSubstr("<img alt=\"Three &lt;words&gt; &amp; a mask\" src=\"data:image/"),
                    HasSubstr("data-theme=\"light\""), HasSubstr("default-src 'none'"),
                    HasSubstr("<th scope=\"row\">&lt;b&gt;&amp;</th><td>0.25</td><td>0.75"
                              "</td><td>masked</td>"),
                    Not(HasSubstr("<script")), Not(HasSubstr("<b>"))));
  EXPECT_THAT(page, Not(HasSubstr("style=\"")));
  EXPECT_THAT(figure_page(testing_support::sample_curves()),
              HasSubstr("<th scope=\"row\">64</th><td>4096</td><td>64</td>"));
  EXPECT_THAT(figure_page(testing_support::sample_bars()),
              HasSubstr("<th scope=\"row\">general</th><td>2</td><td>0.5</td>"));
  EXPECT_THAT(figure_page(testing_support::sample_positions()),
              HasSubstr("16 × 20 colours, without numbers"));
}

TEST(Figure, APageFollowsTheScreen) {
  const std::string page = figure_page(sample_weights(), sample_weights(Theme::kDark));
  EXPECT_THAT(page, AllOf(HasSubstr("data-theme=\"auto\""),
                          HasSubstr("media=\"(prefers-color-scheme: dark)\""),
                          HasSubstr("media=\"(max-width: 600px)\"")));
  EXPECT_THAT(std::string(explorer::style_source()),
              HasSubstr("@media (prefers-color-scheme: dark) {\n:root[data-theme=\"auto\"]"));
}

// A screen of 390 pixels, minus the margins of a picture.
TEST(Figure, ANarrowPageHasThePanelsBelowEachOther) {
  Figure figure = sample_weights();
  figure.panels.assign(4, figure.panels[0]);
  figure.columns = 4;
  const Figure narrow = figure::narrowed(figure);
  EXPECT_EQ(narrow.columns, 1);
  const figure::Fonts fonts;
  EXPECT_LE(figure::plan_figure(narrow, fonts).size.width, 400);
  const auto shape = [](const Panel& panel) {
    return static_cast<double>(panel.width) / static_cast<double>(panel.height);
  };
  EXPECT_NEAR(shape(narrow.panels[3]), shape(figure.panels[3]), 0.02);
  figure.panels.assign(24, figure.panels[0]);
  EXPECT_EQ(figure::narrowed(figure).columns, 4);
}

TEST(Figure, RefusesWhatDoesNotFit) {
  const auto refuses = [](const Figure& figure, const Message& text) {
    EXPECT_THAT([&] { render_figure(figure, FigureFormat::kSvg); },
                ThrowsMessage<InvalidArgument>(text));
  };
  Figure figure = sample_weights();
  figure.columns = 0;
  refuses(figure, {"columns", "0"});
  figure = sample_weights();
  figure.panels[0].cells.colors.pop_back();
  refuses(figure, {"panel 0", "8"});
  figure = sample_weights();
  figure.panels[0].width = 100'000;
  refuses(figure, "is 100000 × ");
  figure = sample_weights();
  figure.panels[0].x.is_log = true;
  refuses(figure, "expected two different positive numbers");
  figure = sample_weights();
  figure.panels[0].curves = {{"", {1, 2}, {1}}};
  refuses(figure, "a curve of 2 x and 1 y");
  figure = sample_weights();
  figure.panels.assign(2000, figure.panels[0]);
  refuses(figure, "draw fewer of them");
}

TEST(Figure, WritesTheWholeFileOrNothing) {
  const auto folder = std::filesystem::temp_directory_path() / "heed-figure-test";
  std::filesystem::create_directories(folder);
  write_figure(folder / "w.svg", sample_weights());
  EXPECT_TRUE(read((folder / "w.svg").string()) ==
              render_figure(sample_weights(), FigureFormat::kSvg));
  EXPECT_THROW(write_figure(folder / "missing" / "w.svg", sample_weights()), IoError);
  EXPECT_THROW(write_figure(folder / "w.txt", sample_weights()), InvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(folder / "w.txt"));
  std::filesystem::remove_all(folder);
}

TEST(FigureAxis, TicksAreRoundNumbers) {
  const auto labels = [](const Axis& axis) {
    std::string text;
    for (const Tick& tick : axis.ticks) text += tick.label + ' ';
    return text;
  };
  EXPECT_EQ(labels(figure::number_axis("", 0, 1, false, 5)), "0.0 0.2 0.4 0.6 0.8 1.0 ");
  EXPECT_EQ(labels(figure::number_axis("", -0.4, 0.41, false, 5)), "-0.4 -0.2 0.0 0.2 0.4 ");
  EXPECT_EQ(labels(figure::number_axis("", 10, 60, false, 6)), "10 20 30 40 50 60 ");
  EXPECT_EQ(labels(figure::number_axis("", 1, 1e6, true, 6)), "1 10 100 1000 10⁴ 10⁵ 10⁶ ");
  EXPECT_EQ(labels(figure::number_axis("", 16, 300, true, 6)), "20 50 100 200 ");
  EXPECT_EQ(labels(figure::category_axis("", {{}, 8, 100, 0})), "0 100 200 300 400 500 600 700 ");
  EXPECT_EQ(labels(figure::category_axis("", {{}, 64, 128, 0})), "0 2000 4000 6000 8000 ");
}

}  // namespace
}  // namespace heed
