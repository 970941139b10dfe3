#include "heed/nn/module.h"

#include <ostream>

namespace heed { inline namespace v0 { namespace nn {

namespace {

// Indents every line but the first by two columns.
std::string indented(const std::string& text) {
  std::string result;
  for (const char c : text) {
    result += c;
    if (c == '\n') result += "  ";
  }
  return result;
}

}  // namespace

template <class T>
Module<T>::Module() = default;
template <class T>
Module<T>::~Module() = default;

template <class T>
std::string Module<T>::extra_repr() const {
  return "";
}

template <class T>
std::vector<NamedVariable<T>> Module<T>::named_parameters() const {
  std::vector<NamedVariable<T>> result;
  collect_parameters("", result);
  return result;
}

template <class T>
std::vector<Variable<T>> Module<T>::parameters() const {
  std::vector<Variable<T>> result;
  for (const auto& [name, variable] : named_parameters()) result.push_back(variable);
  return result;
}

template <class T>
std::int64_t Module<T>::num_parameters() const {
  std::int64_t count = 0;
  for (const auto& parameter : parameters()) count += parameter.num_elements();
  return count;
}

template <class T>
void Module<T>::train(bool is_training) {
  is_training_ = is_training;
  for (const auto& [name, part] : parts_) part->train(is_training);
}

template <class T>
void Module<T>::for_each_part(
    const std::function<void(const std::string& name, Module& part)>& use) {
  visit_parts("", use);
}

template <class T>
void Module<T>::visit_parts(const std::string& prefix,
                            const std::function<void(const std::string& name, Module& part)>& use) {
  for (const auto& [name, part] : parts_) {
    use(prefix + name, *part);
    part->visit_parts(prefix + name + ".", use);
  }
}

template <class T>
void Module<T>::zero_grad() const {
  for (const auto& parameter : parameters()) parameter.zero_grad();
}

template <class T>
std::string Module<T>::summary() const {
  const std::string extra = extra_repr();
  if (parts_.empty()) return class_name() + "(" + extra + ")";
  std::string lines = extra.empty() ? "" : "\n  " + extra;
  for (const auto& [name, part] : parts_) {
    lines += "\n  (" + name + "): " + indented(part->summary());
  }
  return class_name() + "(" + lines + "\n)";
}

template <class T>
Variable<T> Module<T>::make_parameter(std::string name, Tensor<T> value) {
  parameters_.push_back({std::move(name), Variable<T>(std::move(value), true)});
  return parameters_.back().variable;
}

template <class T>
Variable<T> Module<T>::make_buffer(std::string name, Tensor<T> value) {
  Variable<T> buffer(std::move(value));
  buffers_.push_back({std::move(name), buffer});
  return buffer;
}

template <class T>
void Module<T>::make_constant(std::string name, Tensor<bool> value) {
  buffers_.push_back({std::move(name), std::make_shared<const Tensor<bool>>(std::move(value))});
}

template <class T>
void Module<T>::collect_parameters(const std::string& prefix,
                                   std::vector<NamedVariable<T>>& out) const {
  for (const auto& [name, variable] : parameters_) out.push_back({prefix + name, variable});
  for (const auto& [name, part] : parts_) part->collect_parameters(prefix + name + ".", out);
}

template <class T>
void Module<T>::collect_slots(const std::string& prefix, std::vector<Slot>& out) const {
  for (const auto& [name, variable] : parameters_) out.push_back({prefix + name, variable});
  for (const auto& [name, buffer] : buffers_) out.push_back({prefix + name, buffer});
  for (const auto& [name, part] : parts_) part->collect_slots(prefix + name + ".", out);
}

template <class T>
auto Module<T>::slots() const -> std::vector<Slot> {
  std::vector<Slot> result;
  collect_slots("", result);
  return result;
}

std::ostream& operator<<(std::ostream& out, const Module<float>& module) {
  return out << module.summary();
}
std::ostream& operator<<(std::ostream& out, const Module<double>& module) {
  return out << module.summary();
}

template class Module<float>;
template class Module<double>;
template class Layer<float>;
template class Layer<double>;

}}}  // namespace heed::v0::nn
