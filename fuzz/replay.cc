// Runs a fuzz target without libFuzzer, on given files and on mutations of them that are the same
// in every run. Usage: heed_fuzz TARGET MUTATIONS FILE_OR_FOLDER...
#include "replay.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

// Defined by AddressSanitizer, which calls `report` before it ends the program.
// NOLINTNEXTLINE(bugprone-reserved-identifier, readability-identifier-naming)
extern "C" [[gnu::weak]] void __sanitizer_set_death_callback(void (*report)());

namespace {

namespace fs = std::filesystem;
using Random = std::mt19937;

std::size_t below(Random& random, std::size_t bound) { return bound == 0 ? 0 : random() % bound; }

// Values at the limits of parsers, as bytes and as text.
std::string interesting(Random& random) {
  static const std::vector<std::string> texts{"0",
                                              "-1",
                                              "1e999",
                                              "4294967296",
                                              "9223372036854775807",
                                              "9223372036854775808",
                                              "18446744073709551616",
                                              "\"",
                                              "\\",
                                              "{",
                                              "[",
                                              ",",
                                              "nan",
                                              "unbounded",
                                              "\r\n",
                                              std::string(1, '\0'),
                                              std::string(2, '\xFF'),
                                              std::string(8, '\xFF'),
                                              std::string(7, '\xFF') + '\x7F',
                                              "\xC3\x28",
                                              "\xF0\x9F\x98\x80"};
  return texts[below(random, texts.size())];
}

void mutate_once(Random& random, std::string& bytes, const std::vector<std::string>& inputs) {
  const std::size_t at = below(random, bytes.size() + 1);
  const std::size_t length = std::min(below(random, 64), bytes.size() - at);
  switch (below(random, 8)) {
    case 0:
      if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(random, 8)));
      break;
    case 1:
      if (at < bytes.size()) bytes[at] = static_cast<char>(random());
      break;
    case 2:
      bytes.insert(at, interesting(random));
      break;
    case 3: {
      const std::string text = interesting(random);
      bytes.replace(at, text.size(), text);
      break;
    }
    case 4:
      bytes.erase(at, length);
      break;
    case 5:
      bytes.insert(below(random, bytes.size() + 1), bytes.substr(at, length));
      break;
    case 6:
      bytes.resize(at);
      break;
    default: {
      const std::string& other = inputs[below(random, inputs.size())];
      bytes = bytes.substr(0, at) + other.substr(below(random, other.size() + 1));
    }
  }
}

std::string mutation(std::uint32_t number, const std::vector<std::string>& inputs) {
  Random random(number);
  std::string bytes = inputs[below(random, inputs.size())];
  for (std::size_t times = 1 + below(random, 4); times > 0; --times)
    mutate_once(random, bytes, inputs);
  return bytes;
}

// The name of the input being run, for error reports.
char current[512] = "nothing";

void report_current() {
  constexpr std::string_view kBefore = "\nthe input was ";
  [[maybe_unused]] auto written = write(STDERR_FILENO, kBefore.data(), kBefore.size());
  written = write(STDERR_FILENO, current, std::strlen(current));
  written = write(STDERR_FILENO, "\n", 1);
}

extern "C" void report_and_end(int signal) {
  report_current();
  _exit(128 + signal);
}

void run(const ReplayedTarget& target, const std::string& what, const std::string& bytes) {
  what.copy(current, sizeof current - 1);
  current[std::min(what.size(), sizeof current - 1)] = '\0';
  // A copy of exactly this length, so that a read past the end is noticed.
  const std::vector<std::uint8_t> copy(bytes.begin(), bytes.end());
  target.run(copy.data(), copy.size());
}

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<fs::path> files_of(const std::vector<std::string>& arguments) {
  std::vector<fs::path> files;
  for (const fs::path argument : arguments) {
    if (!fs::is_directory(argument)) {
      files.push_back(argument);
      continue;
    }
    for (const auto& entry : fs::recursive_directory_iterator(argument)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

int replay(const ReplayedTarget& target, std::uint32_t mutations,
           const std::vector<std::string>& arguments) {
  std::vector<std::string> inputs;
  for (const fs::path& file : files_of(arguments)) {
    inputs.push_back(contents(file));
    run(target, file.string(), inputs.back());
  }
  if (inputs.empty()) {
    std::cerr << "there are no inputs\n";
    return 1;
  }
  for (std::uint32_t number = 0; number < mutations; ++number) {
    run(target, "mutation " + std::to_string(number), mutation(number, inputs));
  }
  std::cout << inputs.size() << " inputs and " << mutations << " mutations of them\n";
  return 0;
}

const ReplayedTarget* target_called(const std::string& name) {
  for (const ReplayedTarget* target = kReplayedTargets; target->name != nullptr; ++target) {
    if (name == target->name) return target;
  }
  std::cerr << "there is no fuzz target '" << name << "'\n";
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  std::uint32_t mutations = 0;
  const auto is_number = [&](const std::string& text) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), mutations);
    return error == std::errc() && end == text.data() + text.size();
  };
  if (arguments.size() < 3 || !is_number(arguments[1])) {
    std::cerr << "usage: " << argv[0] << " TARGET MUTATIONS FILE_OR_FOLDER...\n";
    return 2;
  }
  const ReplayedTarget* target = target_called(arguments[0]);
  if (target == nullptr) return 2;
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(report_current);
  } else {
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE}) std::signal(signal, report_and_end);
  }
  std::signal(SIGABRT, report_and_end);
  return replay(*target, mutations, {arguments.begin() + 2, arguments.end()});
}
