// Estimates the time of attention on a cluster of machines like this one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/divided_pass.h"
#include "bench/report.h"

namespace heed::cli {

// The connection of the machines.
struct Links {
  double latency_us = 20;
  double gbytes_per_s = 10;
};

struct Simulation {
  std::vector<DividedCase> cases;  // all with the same mask
  std::vector<std::int64_t> ranks;
  int threads = 1;  // per rank
  Links links;
  std::string out;  // a picture, or empty
  ReportOptions report;
};

// Measures the rate of this machine and prints the estimated times as a table or JSON. Throws
// UsageError where the ending of `out` is that of no picture.
void report_simulation(const Simulation& simulation);

// Returns the endings of the picture, for the help text.
std::string simulation_endings();

}  // namespace heed::cli
