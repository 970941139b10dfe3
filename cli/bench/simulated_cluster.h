// What attention would take on machines that are not there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/divided_pass.h"
#include "bench/report.h"

namespace heed::cli {

// How machines are connected.
struct Links {
  double latency_us = 20;
  double gbytes_per_s = 10;
};

struct Simulation {
  std::vector<DividedCase> cases;  // with the same mask
  std::vector<std::int64_t> ranks;
  int threads = 1;  // of a rank
  Links links;
  std::string out;  // a picture, unless empty
  ReportOptions report;
};

// Measures the rate of this machine and prints the times of the model, as a table or as JSON.
// Throws UsageError when the picture's ending names none.
void report_simulation(const Simulation& simulation);

// The endings of the picture, for help.
std::string simulation_endings();

}  // namespace heed::cli
