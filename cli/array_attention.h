// Attention on arrays from files, as the verb run computes it, and pictures of its weights.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "heed/attention/mask.h"
#include "heed/io/any_tensor.h"
#include "picture_file.h"

namespace heed::cli {

// An array and the file it came from.
struct ArrayFile {
  std::string path;
  AnyTensor array;
};

// Returns for example "'q.npy' [8, 128, 64] float32".
std::string describe(const ArrayFile& file);

// Reads an array of any shape. Throws FormatError and IoError as read_npy does, InvalidArgument
// unless it holds float16, float32 or float64.
ArrayFile read_floats(const std::string& path);

// Reads the query, key or value. Throws FormatError and IoError as read_npy does, InvalidArgument
// unless the array holds float16, float32 or float64 in 2 to 4 dimensions.
ArrayFile read_operand(const std::string& path);

// A mask read from a file: which keys are visible, and the numbers that are added to the scores.
struct ArrayMask {
  Mask mask;
  std::optional<AnyTensor> added;
};

// Reads the mask in the file at `path`; `means` is allow, block or additive. Throws as read_npy
// does, and InvalidArgument unless the array holds bool or integers that are all 0 or 1 (allow,
// block), or float numbers (additive).
ArrayMask read_mask(const std::string& path, const std::string& means);

struct ArrayProblem {
  ArrayFile query;
  ArrayFile key;
  ArrayFile value;
  Mask mask;
  std::optional<AnyTensor> bias;
  std::optional<double> scale;
  double softcap = 0;
  std::int64_t query_offset = 0;
  bool keeps_weights = false;
};

// The results of attention. Each has as many dimensions as the query, lse one fewer.
struct ArrayResult {
  AnyTensor out;      // in the operands' type
  AnyTensor lse;      // float64 for float64 operands, else float32
  AnyTensor weights;  // in lse's type; empty unless kept
};

// Computes attention: float64 in double, float16 and float32 in float. Missing leading dimensions
// are 1. Throws InvalidArgument when the types differ or the shapes or options do not fit.
ArrayResult attend(const ArrayProblem& problem);

// Returns a figure of every head of batch entry 0 with masked keys hatched, the explorer with these
// heads, and all weights as JSON. `problem` and `result` must outlive the picture, and the result
// must have weights.
Picture picture_of(const ArrayProblem& problem, const ArrayResult& result,
                   const PictureArguments& arguments);

}  // namespace heed::cli
