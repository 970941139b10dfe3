#include <array>
#include <ctime>

#include "text/jinja/text_filters.h"

namespace heed { inline namespace v0 { namespace text { namespace jinja {

using Kind = Value::Kind;

namespace {

Value range(Evaluator& evaluator, const Value&, const Arguments& arguments) {
  const auto& given = arguments.positional;
  if (given.empty() || given.size() > 3) evaluator.fail("range() takes one to three numbers");
  const auto number = [&](std::size_t i) { return whole_argument(evaluator, &given[i], 0); };
  const std::int64_t begin = given.size() == 1 ? 0 : number(0);
  const std::int64_t end = number(given.size() == 1 ? 0 : 1);
  const std::int64_t step = given.size() == 3 ? number(2) : 1;
  constexpr std::int64_t kLimit = std::int64_t{1} << 60;
  for (const std::int64_t value : {begin, end, step}) {
    if (value > kLimit || value < -kLimit) evaluator.fail("range() with too large a number");
  }
  if (step == 0) evaluator.fail("range() with the step 0");
  const std::int64_t distance = step > 0 ? end - begin : begin - end;
  const std::int64_t stride = step > 0 ? step : -step;
  const std::int64_t count = distance <= 0 ? 0 : (distance - 1) / stride + 1;
  if (count > kMaxRange) evaluator.fail("range() with more than 100000 numbers");
  evaluator.take(static_cast<std::size_t>(count));
  std::vector<Value> numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(whole(begin + i * step));
  return sequence(Kind::kRange, std::move(numbers));
}

Value dict(Evaluator& evaluator, const Value&, const Arguments& arguments) {
  std::vector<Value> keys;
  std::vector<Value> items;
  if (arguments.positional.size() > 1) evaluator.fail("dict() of several dictionaries");
  if (!arguments.positional.empty()) {
    const Value& base = arguments.positional[0];
    if (!base.is(Kind::kDict)) evaluator.fail("dict() of what is no dictionary");
    keys = base.object->keys;
    items = base.object->items;
    evaluator.take(keys.size());
  }
  for (const auto& [name, value] : arguments.named) {
    std::size_t i = 0;
    while (i < keys.size() && !(keys[i].is_string() && keys[i].bytes() == name)) ++i;
    if (i == keys.size()) {
      keys.push_back(string(name));
      items.push_back(value);
    } else {
      items[i] = value;
    }
  }
  return dictionary(std::move(keys), std::move(items));
}

Value make_namespace(Evaluator& evaluator, const Value&, const Arguments& arguments) {
  Value result = evaluator.checked(dict(evaluator, {}, arguments));
  if (depth_of(result) >= kMaxValueDepth) evaluator.fail("a value nested too deeply");
  for (const Value& key : result.object->keys) {
    if (!key.is_string() || key.bytes().starts_with('_')) {
      evaluator.fail("a namespace with a name that is no text, or begins with '_'");
    }
  }
  result.kind = Kind::kNamespace;
  result.object->depth = kMaxValueDepth;
  return result;
}

Value raise_exception(Evaluator& evaluator, const Value&, const Arguments& arguments) {
  const Value& message = needed(evaluator, arguments.find(0, "message"), "the message");
  throw Refusal{evaluator.printed(message).bytes()};
}

std::tm local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm time{};
#ifdef _WIN32
  localtime_s(&time, &now);
#else
  localtime_r(&now, &time);
#endif
  return time;
}

// As Python's strftime() in the C locale, of the local time.
Value strftime_now(Evaluator& evaluator, const Value&, const Arguments& arguments) {
  const std::string& format = string_argument(evaluator, arguments.find(0, "format"), "the format");
  constexpr std::string_view kKnown = "aAbBdHIjmMpSUwWyYcxX%";
  const std::tm time = local_time();
  std::string result;
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      result += format[i];
      continue;
    }
    const char letter = ++i < format.size() ? format[i] : '\0';
    if (letter == '\0' || kKnown.find(letter) == std::string_view::npos) {
      evaluator.fail("a format of dates that heed does not know");
    }
    std::array<char, 128> part{};
    const std::array<char, 3> one{'%', letter, '\0'};
    result.append(part.data(), std::strftime(part.data(), part.size(), one.data(), &time));
  }
  return string(result);
}

constexpr std::array<Callable, 5> kFunctions{{
    {"range", &range, "/start stop step"},
    {"dict", &dict, kAnyParameters},
    {"namespace", &make_namespace, kAnyParameters},
    {"raise_exception", &raise_exception, "message"},
    {"strftime_now", &strftime_now, "format"},
}};

}  // namespace

const Callable* find_function(std::string_view name) { return found_in(kFunctions, name); }

}}}}  // namespace heed::v0::text::jinja
