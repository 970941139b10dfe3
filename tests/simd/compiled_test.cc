#include "simd/compiled.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "attention/kernels/kernels.h"
#include "attention/kernels/target.h"
#include "heed/attention.h"
#ifndef HEED_WITHOUT_NN
#include "models/kernels/row_functions.h"
#include "models/kernels/weight_kernels.h"
#include "nn/ops/vector_loops.h"
#endif

namespace heed::kernels { namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsSubsetOf;

// Tables that are their own names.
const std::string* best() {
  static const std::string table = "of the best";
  return &table;
}
const std::string* other() {
  static const std::string table = "of another";
  return &table;
}
const std::string* baseline() {
  static const std::string table = "of the baseline";
  return &table;
}
constexpr Compiled<std::string> kTables[] = {
    {"BEST", 4, best}, {"MISSING", 1, nullptr}, {"OTHER", 2, other}, {"baseline", 8, baseline}};

std::vector<std::string> names_for(std::int64_t supported) {
  std::vector<std::string> names;
  for (const auto& one : with_vectors(kTables, supported)) names.emplace_back(one.vectors);
  return names;
}

// Independent of other targets that Highway detects and of its bit numbers.
TEST(CompiledTables, AreInTheOrderInWhichTheyAreListed) {
  EXPECT_THAT(names_for(~std::int64_t{0}), ElementsAre("BEST", "OTHER"));
  EXPECT_THAT(names_for(2 | 1 | 16), ElementsAre("OTHER"));
  EXPECT_THAT(names_for(1 | 8), IsEmpty());
}

TEST(CompiledTables, ThoseOfNoNameAreTheBaselines) {
  EXPECT_EQ(*table_for("reference", kTables), "of the baseline");
  EXPECT_EQ(*table_for("MISSING", kTables), "of the baseline");
}

#if defined(__x86_64__)

// Returns the flags that Linux lists for the first processor.
std::set<std::string> flags_of_processor() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("flags")) break;
  }
  std::istringstream words(line);
  std::set<std::string> flags;
  for (std::string word; words >> word;) flags.insert(word);
  return flags;
}

// The flags, named as in Linux, that a processor needs for a table.
struct Need {
  std::string_view table;
  std::string_view vectors;
  std::string_view flags;
};
constexpr std::string_view kSse4 = "sse4_1 sse4_2 ssse3 pclmulqdq aes";
constexpr Need kNeeds[] = {
    {"AMX_BF16", "AVX512", "amx_bf16 amx_tile avx512_bf16"},
    {"AVX512_VNNI", "AVX512", "avx512_vnni"},
    {"AVX512_BF16", "AVX512", "avx512_bf16"},
    {"AVX512", "AVX512", "avx512f avx512bw avx512dq avx512vl"},
    {"AVX2", "AVX2", "avx2 fma bmi1 bmi2 f16c abm"},
    {"SSE4", "SSE4", kSse4},
};

bool has_all(const std::set<std::string>& flags, std::string_view needed) {
  std::istringstream words{std::string(needed)};
  for (std::string word; words >> word;) {
    if (!flags.contains(word)) return false;
  }
  return true;
}

// Returns the tables for these flags, the best first. AMD processors multiply bfloat16 pairs faster
// than floats.
std::vector<std::string> expected_tables(const std::set<std::string>& flags, bool is_of_amd) {
  std::vector<std::string> names;
  std::string needed(kSse4);
  for (auto need = std::rbegin(kNeeds); need != std::rend(kNeeds); ++need) {
    const bool has_vectors = need->table == need->vectors;
    if (has_vectors) needed += ' ' + std::string(need->flags);
    if (!has_all(flags, needed) || !has_all(flags, need->flags)) continue;
    names.insert(names.begin(), std::string(need->table));
  }
  if (is_of_amd && names.size() > 1 && names[0] == "AVX512_VNNI" && names[1] == "AVX512_BF16") {
    std::swap(names[0], names[1]);
  }
  return names;
}

#ifdef HEED_ALLOWED_TARGETS
constexpr bool kLeavesSomeOut = true;
#else
constexpr bool kLeavesSomeOut = false;
#endif

bool is_of_amd() {
  __builtin_cpu_init();
  return __builtin_cpu_is("amd") != 0;
}

std::vector<std::string> tables_of_this_processor() {
  return expected_tables(flags_of_processor(), is_of_amd());
}

std::string best_vectors() {
  const auto tables = tables_of_this_processor();
  if (tables.empty()) return "baseline";
  for (const Need& need : kNeeds) {
    if (need.table == tables.front()) return std::string(need.vectors);
  }
  return "";
}

// Checks how flags of some processors are interpreted.
TEST(TablesOfAProcessor, AreExpectedByItsFlags) {
  std::set<std::string> flags{"sse4_1", "sse4_2", "ssse3", "pclmulqdq", "aes"};
  EXPECT_THAT(expected_tables(flags, false), ElementsAre("SSE4"));
  flags.insert({"avx2", "fma", "bmi1", "bmi2", "f16c", "abm"});
  EXPECT_THAT(expected_tables(flags, false), ElementsAre("AVX2", "SSE4")) << "Haswell, Zen 3";
  flags.insert({"avx512f", "avx512bw", "avx512dq", "avx512vl"});
  EXPECT_THAT(expected_tables(flags, false), ElementsAre("AVX512", "AVX2", "SSE4")) << "Skylake";
  flags.insert("avx512_vnni");
  EXPECT_THAT(expected_tables(flags, false), ElementsAre("AVX512_VNNI", "AVX512", "AVX2", "SSE4"))
      << "Ice Lake";
  flags.insert("avx512_bf16");
  EXPECT_THAT(expected_tables(flags, true),
              ElementsAre("AVX512_BF16", "AVX512_VNNI", "AVX512", "AVX2", "SSE4"))
      << "Zen 4";
  flags.insert({"amx_bf16", "amx_tile", "avx512_fp16"});
  EXPECT_THAT(expected_tables(flags, false),
              ElementsAre("AMX_BF16", "AVX512_VNNI", "AVX512_BF16", "AVX512", "AVX2", "SSE4"))
      << "Sapphire Rapids";
}

// Each family of kernels has the best table first: floats, bfloat16, integers, AMX tiles.
TEST(TablesOfAProcessor, AreAllInUse) {
  if (kLeavesSomeOut) GTEST_SKIP() << "HEED_INSTRUCTION_SETS leaves some out";
  std::vector<std::string> expected = tables_of_this_processor();
  std::vector<std::string> found;
  for (const auto* table : supported_kernels()) {
    // AMX tiles may be emulated, and Linux may refuse the memory for real ones.
    if (std::string_view(table->name) != "AMX_BF16") found.emplace_back(table->name);
    EXPECT_EQ(table->in_pairs != nullptr, std::string_view(table->name).ends_with("_BF16"));
  }
  std::erase(expected, "AMX_BF16");
  EXPECT_EQ(found, expected);
  if (std::getenv("HEED_TARGET") == nullptr) {
    EXPECT_EQ(vectors_in_use(), expected.empty() ? "reference" : best_vectors());
  }
}

#ifndef HEED_WITHOUT_NN
TEST(TablesOfAProcessor, AreTheBestOfModelsToo) {
  if (std::getenv("HEED_TARGET") != nullptr) GTEST_SKIP() << "another one is asked for";
  if (kLeavesSomeOut) GTEST_SKIP() << "HEED_INSTRUCTION_SETS leaves some out";
  const std::string best_of_all = best_vectors();
  EXPECT_EQ(nn::vector_loops<float>().vectors, best_of_all);
  EXPECT_EQ(nn::vector_loops<double>().vectors, best_of_all);
  EXPECT_EQ(models::row_functions().vectors, best_of_all);
  EXPECT_EQ(models::weight_kernels_in_use().name,
            best_of_all == "baseline" ? std::string("reference") : best_of_all);
}
#endif

#endif  // defined(__x86_64__)

TEST(TablesOfAProcessor, AreOnlyThoseThatHeedNames) {
  EXPECT_THAT(attention_targets(), IsSubsetOf({"AMX_BF16", "AVX512_BF16", "AVX512_VNNI", "AVX512",
                                               "AVX2", "SSE4", "NEON_BF16", "NEON", "reference"}));
}

#ifndef HEED_WITHOUT_NN
// Also run with HEED_TARGET set to each instruction set.
TEST(TablesInUse, AreOfOneInstructionSet) {
  const std::string vectors(vectors_in_use());
  const std::string expected = vectors == "reference" ? "baseline" : vectors;
  EXPECT_EQ(models::weight_kernels_in_use().name, vectors);
#if defined(__x86_64__)
  EXPECT_EQ(nn::vector_loops<float>().vectors, expected);
  EXPECT_EQ(nn::vector_loops<double>().vectors, expected);
  EXPECT_EQ(models::row_functions().vectors, expected);
#endif
}
#endif

}  // namespace
}  // namespace heed::kernels
