// Operations on texts that are both filters and methods.
#pragma once

#include "text/jinja/evaluator.h"
#include "text/jinja/python_text.h"

namespace heed { inline namespace v0 { namespace text { namespace jinja {

Value upper(Evaluator& evaluator, const Value& value, const Arguments& arguments);
Value lower(Evaluator& evaluator, const Value& value, const Arguments& arguments);
Value capitalized(Evaluator& evaluator, const Value& value, const Arguments& arguments);
Value replaced(Evaluator& evaluator, const Value& value, const Arguments& arguments);
Value title_filter(Evaluator& evaluator, const Value& value, const Arguments& arguments);
Value title_method(Evaluator& evaluator, const Value& value, const Arguments& arguments);
Value indented(Evaluator& evaluator, const Value& value, const Arguments& arguments);
MarkedText stripped_part(Evaluator& evaluator, const MarkedText& text, Sides sides,
                         const Value* characters);
MarkedText joined_texts(Evaluator& evaluator, const std::vector<Value>& items,
                        const MarkedText& separator);
std::vector<Value> lines_of(Evaluator& evaluator, const MarkedText& text, bool keeps_ends);

// json.dumps().
Value to_json(Evaluator& evaluator, const Value& value, const Arguments& arguments);

}}}}  // namespace heed::v0::text::jinja
