// The fuzz targets of one program, which replay.cc runs without libFuzzer.
#pragma once

#include <cstddef>
#include <cstdint>

struct ReplayedTarget {
  const char* name;  // null at the end of the table
  int (*run)(const std::uint8_t* data, std::size_t size);
};

extern const ReplayedTarget kReplayedTargets[];
