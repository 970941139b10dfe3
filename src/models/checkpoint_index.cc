#include "models/checkpoint_index.h"

#include <fmt/format.h>

#include <utility>

#include "core/printable.h"
#include "heed/core/error.h"
#include "io/json.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

constexpr std::string_view kMap = "weight_map";

bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

// Reads the members of "weight_map"; other members are skipped at any depth.
class IndexReader : public io::JsonReader {
 public:
  explicit IndexReader(const std::string& file) : JsonReader(file), file_(file) {}

  std::map<std::string, std::string> take() {
    if (!has_map_) fail("there is no object 'weight_map'");
    return std::move(files_);
  }

  bool start_object(std::size_t) override {
    refuse_in_map("an object");
    ++depth_;
    if (depth_ == 2 && is_at_map_) begin_map();
    return true;
  }
  bool end_object() override {
    if (depth_ == 2) is_in_map_ = false;
    --depth_;
    return true;
  }
  bool start_array(std::size_t) override {
    refuse("an array");
    ++depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool key(string_t& key) override {
    if (is_in_map_) {
      tensor_ = key;
      if (files_.contains(key)) fail(fmt::format("{} occurs twice", subject()));
    }
    if (depth_ == 1) is_at_map_ = key == kMap;
    return true;
  }
  bool string(string_t& value) override {
    if (!is_in_map_) return refuse("a string");
    if (!is_plain_name(value)) {
      fail(fmt::format("{} lies in '{}', expected the name of a file in the same folder", subject(),
                       io::printable(value)));
    }
    files_.emplace(tensor_, value);
    return true;
  }
  bool null() override { return refuse("null"); }
  bool boolean(bool) override { return refuse("a boolean"); }
  bool number_integer(number_integer_t) override { return refuse("a number"); }
  bool number_unsigned(number_unsigned_t) override { return refuse("a number"); }
  bool number_float(number_float_t, const string_t&) override { return refuse("a number"); }

 private:
  [[noreturn]] void fail(const std::string& problem) const { throw FormatError(file_, 0, problem); }

  std::string subject() const { return fmt::format("tensor '{}'", io::printable(tensor_)); }

  void begin_map() {
    if (has_map_) fail("'weight_map' occurs twice");
    has_map_ = true;
    is_in_map_ = true;
  }

  void refuse_in_map(std::string_view found) const {
    if (is_in_map_) fail(fmt::format("{} lies in {}, expected a string", subject(), found));
  }

  // Throws where only an object may stand; returns true elsewhere.
  bool refuse(std::string_view found) const {
    refuse_in_map(found);
    if (depth_ == 0) fail(fmt::format("the index is {}, expected an object", found));
    if (depth_ == 1 && is_at_map_) {
      fail(fmt::format("'weight_map' is {}, expected an object", found));
    }
    return true;
  }

  const std::string& file_;
  std::map<std::string, std::string> files_;
  int depth_ = 0;
  bool is_at_map_ = false;  // the last key of the outermost object was "weight_map"
  bool is_in_map_ = false;
  bool has_map_ = false;
  std::string tensor_;
};

}  // namespace

std::map<std::string, std::string> parse_checkpoint_index(std::string_view text,
                                                          const std::string& file) {
  IndexReader reader(file);
  io::read_json(text, reader);
  return reader.take();
}

}}}  // namespace heed::v0::models
