// The state of a module: its names, and loading it from another.
#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <unordered_map>

#include "heed/core/error.h"
#include "heed/nn/module.h"

namespace heed { inline namespace v0 { namespace nn {

namespace {

const Shape& shape_of(const AnyView& any) {
  return std::visit([](const auto& tensor) -> const Shape& { return tensor.shape(); }, any);
}

template <class T>
AnyView view_of(const Variable<T>& variable) {
  return variable.value();
}
AnyView view_of(const std::shared_ptr<const Tensor<bool>>& constant) { return constant->view(); }

// Converts elements of any type to T.
template <class T>
Tensor<T> converted(const AnyView& any) {
  return std::visit(
      [](const auto& from) {
        auto result = Tensor<T>::uninitialized(from.shape());
        T* out = result.data();
        for_each_element(from, [&out](const auto& element) {
          using From = std::decay_t<decltype(element)>;
          if constexpr (std::is_same_v<From, Float16> || std::is_same_v<From, BFloat16>) {
            *out++ = static_cast<T>(static_cast<float>(element));
          } else {
            *out++ = static_cast<T>(element);
          }
        });
        return result;
      },
      any);
}

bool is_equal(const Tensor<bool>& constant, const AnyView& given) {
  const Tensor<double> expected = converted<double>(constant.view());
  const Tensor<double> found = converted<double>(given);
  return std::equal(expected.elements().begin(), expected.elements().end(),
                    found.elements().begin(), found.elements().end());
}

// Collects all errors in a state dict.
class Complaints {
 public:
  explicit Complaints(const std::string& module) : module_(module) {}

  void add(std::string complaint) { text_ += (text_.empty() ? "" : "; ") + std::move(complaint); }
  void throw_if_any() const {
    if (text_.empty()) return;
    throw InvalidArgument(
        fmt::format("load_state_dict: the state does not fit {}: {}", module_, text_));
  }

 private:
  std::string module_;
  std::string text_;
};

using ByName = std::unordered_map<std::string, const AnyView*>;

ByName by_name(const StateDict& state, Complaints& complaints) {
  ByName result;
  for (const auto& [name, value] : state) {
    if (!result.emplace(name, &value).second) complaints.add(name + " is given twice");
  }
  return result;
}

}  // namespace

template <class T>
StateDict Module<T>::state_dict() const& {
  StateDict result;
  for (const Slot& slot : slots()) {
    result.push_back(
        {slot.name, std::visit([](const auto& value) { return view_of(value); }, slot.value)});
  }
  return result;
}

template <class T>
void Module<T>::load_state_dict(const StateDict& state) {
  Complaints complaints(class_name());
  ByName given = by_name(state, complaints);
  std::vector<std::pair<Variable<T>, const AnyView*>> copies;
  for (const Slot& slot : slots()) {
    const auto found = given.find(slot.name);
    if (found == given.end()) {
      complaints.add(slot.name + " is missing");
      continue;
    }
    const AnyView& value = *found->second;
    given.erase(found);
    const AnyView own = std::visit([](const auto& held) { return view_of(held); }, slot.value);
    if (shape_of(value) != shape_of(own)) {
      complaints.add(fmt::format("{} has shape {}, expected {}", slot.name,
                                 to_string(shape_of(value)), to_string(shape_of(own))));
    } else if (const auto* variable = std::get_if<Variable<T>>(&slot.value)) {
      copies.emplace_back(*variable, &value);
    } else if (!is_equal(*std::get<1>(slot.value), value)) {
      complaints.add(slot.name + " is not the constant that the module computes with");
    }
  }
  for (const auto& [name, value] : state) {
    if (given.erase(name) != 0) complaints.add(name + " is unexpected");
  }
  complaints.throw_if_any();
  for (const auto& [variable, value] : copies) {
    const Tensor<T> elements = converted<T>(*value);
    std::copy_n(elements.data(), elements.num_elements(), variable.writable_value().data());
  }
}

template StateDict Module<float>::state_dict() const&;
template StateDict Module<double>::state_dict() const&;
template void Module<float>::load_state_dict(const StateDict&);
template void Module<double>::load_state_dict(const StateDict&);

}}}  // namespace heed::v0::nn
