// Arguments of filters, tests, methods and functions.
#include <fmt/format.h>

#include <algorithm>

#include "core/printable.h"
#include "text/jinja/evaluator.h"

namespace heed { inline namespace v0 { namespace text { namespace jinja {

using Kind = Value::Kind;

Value Evaluator::called(const Callable& callable, const Value& value, const Arguments& arguments) {
  check_arguments(callable.name, callable.parameters, arguments);
  return checked(callable.function(*this, value, arguments));
}

void Evaluator::check_arguments(std::string_view name, std::string_view parameters,
                                const Arguments& arguments) const {
  if (parameters == kAnyParameters) return;
  const bool has_names = !parameters.starts_with('/');
  if (!has_names) parameters.remove_prefix(1);
  std::vector<std::string_view> known;
  while (!parameters.empty()) {
    const std::size_t end = std::min(parameters.find(' '), parameters.size());
    known.push_back(parameters.substr(0, end));
    parameters.remove_prefix(std::min(end + 1, parameters.size()));
  }
  if (arguments.positional.size() > known.size()) {
    fail(fmt::format("'{}' takes {} arguments, not {}", name, known.size(),
                     arguments.positional.size()));
  }
  if (has_names) {
    known.erase(known.begin(),
                known.begin() + static_cast<std::ptrdiff_t>(arguments.positional.size()));
  }
  for (const auto& argument : arguments.named) {
    if (!has_names || std::find(known.begin(), known.end(), argument.first) == known.end()) {
      fail(fmt::format("'{}' has no argument '{}' left", name, io::printable(argument.first)));
    }
  }
}

const Value* Arguments::find(std::size_t position, std::string_view name) const {
  if (position < positional.size()) return &positional[position];
  for (const auto& [known, value] : named) {
    if (known == name) return &value;
  }
  return nullptr;
}

std::int64_t whole_argument(Evaluator& evaluator, const Value* value, std::int64_t otherwise) {
  if (value == nullptr || value->is(Kind::kNone)) return otherwise;
  if (!value->is_whole()) evaluator.fail(fmt::format("{} for an integer", kind_name(*value)));
  return value->integer;
}

bool truth_argument(const Value* value, bool otherwise) {
  return value == nullptr ? otherwise : is_true(*value);
}

const Value& needed(Evaluator& evaluator, const Value* value, std::string_view name) {
  if (value == nullptr) evaluator.fail(fmt::format("{} is missing", name));
  return *value;
}

const std::string& string_argument(Evaluator& evaluator, const Value* value,
                                   std::string_view name) {
  if (!needed(evaluator, value, name).is_string()) {
    evaluator.fail(fmt::format("{} is {}, expected a string", name, kind_name(*value)));
  }
  return value->bytes();
}

}}}}  // namespace heed::v0::text::jinja
