#include "io/gguf_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "core/printable.h"
#include "heed/core/error.h"

namespace heed { inline namespace v0 { namespace io {

namespace {

template <class T>
constexpr std::string_view kElements = "strings";
template <>
constexpr std::string_view kElements<bool> = "bools";
template <>
constexpr std::string_view kElements<std::int64_t> = "integers";
template <>
constexpr std::string_view kElements<double> = "numbers";

// Formats e.g. "3", "true", "'yarn'", "an array of 4 integers".
struct ValueText {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const { return fmt::format("{}", value); }
  std::string operator()(const std::string& value) const {
    return fmt::format("'{}'", printable(value));
  }
  template <class T>
  std::string operator()(const std::vector<T>& values) const {
    return fmt::format("an array of {} {}", values.size(), kElements<T>);
  }
};

}  // namespace

GgufKeys::GgufKeys(const GgufFile& file, std::string prefix)
    : file_(file), prefix_(std::move(prefix)) {}

std::string GgufKeys::asked(std::string_view key) { return *known_.insert(name_of(key)).first; }

bool GgufKeys::has(std::string_view key) { return file_.contains(asked(key)); }

std::int64_t GgufKeys::integer(std::string_view key, std::int64_t otherwise) {
  return has(key) ? file_.integer(name_of(key)) : otherwise;
}

double GgufKeys::number(std::string_view key) { return file_.number(asked(key)); }

double GgufKeys::number(std::string_view key, double otherwise) {
  return has(key) ? number(key) : otherwise;
}

bool GgufKeys::boolean(std::string_view key, bool otherwise) {
  return has(key) ? file_.boolean(name_of(key)) : otherwise;
}

const std::string& GgufKeys::string(std::string_view key) { return file_.string(asked(key)); }

std::string GgufKeys::string(std::string_view key, const std::string& otherwise) {
  return has(key) ? string(key) : otherwise;
}

const std::vector<std::int64_t>& GgufKeys::integers(std::string_view key) {
  return file_.integers(asked(key));
}

const std::vector<double>& GgufKeys::numbers(std::string_view key) {
  return file_.numbers(asked(key));
}

const std::vector<std::string>& GgufKeys::strings(std::string_view key) {
  return file_.strings(asked(key));
}

std::int64_t GgufKeys::size(std::string_view key) {
  const std::int64_t size = file_.integer(asked(key));
  if (size < 1) fail(key, "at least 1");
  return size;
}

std::int64_t GgufKeys::size_in_layers(std::string_view key, std::int64_t num_layers) {
  using Sizes = std::vector<std::int64_t>;
  const auto found = file_.metadata().find(asked(key));
  const bool is_array =
      found != file_.metadata().end() && std::holds_alternative<Sizes>(found->second);
  if (!is_array) return size(key);
  const auto& sizes = std::get<Sizes>(found->second);
  const bool is_one = std::cmp_equal(sizes.size(), num_layers) && num_layers > 0 &&
                      std::all_of(sizes.begin(), sizes.end(),
                                  [&](std::int64_t size) { return size == sizes.front(); });
  if (!is_one || sizes.front() < 1) {
    fail(key, fmt::format("one number of at least 1 for all {} layers", num_layers));
  }
  return sizes.front();
}

void GgufKeys::expect_number(std::string_view key, double expected, std::string_view reason) {
  if (number(key, expected) == expected) return;
  fail(key, fmt::format("{}: {}", expected, reason));
}

void GgufKeys::expect_flag(std::string_view key, bool expected, std::string_view reason) {
  if (boolean(key, expected) == expected) return;
  fail(key, fmt::format("{}: {}", expected, reason));
}

void GgufKeys::ignore(std::string_view key) { known_.insert(name_of(key)); }

void GgufKeys::refuse_others() const {
  const auto& metadata = file_.metadata();
  for (auto i = metadata.lower_bound(prefix_); i != metadata.end(); ++i) {
    const std::string& key = i->first;
    if (!key.starts_with(prefix_)) return;
    if (known_.contains(key)) continue;
    const bool is_ignored = std::any_of(known_.begin(), known_.end(), [&](const std::string& name) {
      return name.ends_with('.') && key.starts_with(name);
    });
    if (is_ignored) continue;
    fail(key.substr(prefix_.size()),
         "no such key: heed does not know what it means and would compute without it");
  }
}

void GgufKeys::fail(std::string_view key, std::string_view expected) const {
  const std::string name = name_of(key);
  const auto found = file_.metadata().find(name);
  const std::string value =
      found == file_.metadata().end() ? "missing" : std::visit(ValueText{}, found->second);
  throw FormatError(file_.name(), 0,
                    fmt::format("{} is {}, expected {}", printable(name), value, expected));
}

}}}  // namespace heed::v0::io
