// An earlier report of the same verb of `heed bench`, which another is set beside.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/json_value.h"

namespace heed::cli {

// Names and what each is, in words.
using Facts = std::map<std::string, std::string>;

class Baseline {
 public:
  // Reads what `heed bench <verb> --json` printed. `number` is the one of each result that is
  // compared, of which less is better. Throws IoError when the file cannot be read, FormatError
  // when it is something else: not JSON, of another verb, a result without its case or number.
  Baseline(std::string file, const std::string& verb, std::string number);

  // Adds to each result whose case the file has "baseline", its number there, and "ratio", that by
  // the number here: 2 is twice as fast. Adds "baseline" to the report: the file, the number, its
  // machine, what differs in words, and the cases that only the one or the other has. Of several
  // results of one case the first belongs to the first.
  void set_beside(nlohmann::ordered_json& report) const;

 private:
  void read_results(const io::JsonPart& report);
  std::vector<std::string> differences_from(const nlohmann::ordered_json& report) const;

  std::string file_;
  std::string number_;
  Facts facts_;                                       // of the machine, and of the model
  std::vector<Facts> cases_;                          // in the order of the file
  std::map<std::string, std::vector<double>> found_;  // by case
};

// What a table says of the baseline: a column of the ratios, given the rows of cells with a header
// in front, and the lines below.
void add_ratios(const nlohmann::ordered_json& report, std::vector<std::vector<std::string>>& rows);
std::string baseline_notes(const nlohmann::ordered_json& report);

}  // namespace heed::cli
