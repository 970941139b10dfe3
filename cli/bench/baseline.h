// An earlier report of the same verb of `heed bench`, with which a new one is compared.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/json_value.h"

namespace heed::cli {

// Names and their values as text.
using Facts = std::map<std::string, std::string>;

class Baseline {
 public:
  // Reads the output of `heed bench <verb> --json`. `number` names the number of each result that
  // is compared; less is better. Throws IoError when the file cannot be read, FormatError when it
  // is not JSON, is of another verb, or has a result without its case or number.
  Baseline(std::string file, const std::string& verb, std::string number);

  // Adds to each result whose case is in the file "baseline", the file's number, and "ratio", the
  // file's number divided by the new one: 2 is twice as fast. Adds "baseline" to the report: the
  // file, the number, its machine, the differences in words, and the cases that only one of the two
  // has. Where a case has several results, they are matched in order.
  void set_beside(nlohmann::ordered_json& report) const;

 private:
  void read_results(const io::JsonPart& report);
  std::vector<std::string> differences_from(const nlohmann::ordered_json& report) const;

  std::string file_;
  std::string number_;
  Facts facts_;                                       // of the machine and the model
  std::vector<Facts> cases_;                          // in the order of the file
  std::map<std::string, std::vector<double>> found_;  // the numbers of each case
};

// Add the baseline to a table: a column of ratios to rows of cells (the header is the first row),
// and the lines below the table.
void add_ratios(const nlohmann::ordered_json& report, std::vector<std::vector<std::string>>& rows);
std::string baseline_notes(const nlohmann::ordered_json& report);

}  // namespace heed::cli
