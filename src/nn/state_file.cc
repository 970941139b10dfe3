#include "heed/nn/state_file.h"

#include <fmt/format.h>

#include "heed/core/error.h"

namespace heed { inline namespace v0 { namespace nn {

namespace {

template <class Owner>
void load_into(const std::filesystem::path& path, Owner& owner) {
  const Safetensors file = read_safetensors(path);
  try {
    owner.load_state_dict(state_dict(file));
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("load: '{}': {}", path.string(), error.what()));
  }
}

}  // namespace

void save(const std::filesystem::path& path, const StateDict& state, const Metadata& metadata) {
  std::map<std::string, AnyView> tensors;
  for (const auto& [name, value] : state) {
    if (!tensors.emplace(name, value).second) {
      throw InvalidArgument(fmt::format("save: {} occurs twice in the state", name));
    }
  }
  write_safetensors(path, tensors, metadata);
}

StateDict state_dict(const Safetensors& file, const std::string& prefix) {
  StateDict result;
  for (const auto& [name, tensor] : file.tensors) {
    if (name.starts_with(prefix)) result.push_back({name.substr(prefix.size()), view(tensor)});
  }
  return result;
}

template <class T>
void load(const std::filesystem::path& path, Module<T>& module) {
  load_into(path, module);
}
template <class T>
void load(const std::filesystem::path& path, Optimizer<T>& optimizer) {
  load_into(path, optimizer);
}

template HEED_API void load(const std::filesystem::path&, Module<float>&);
template HEED_API void load(const std::filesystem::path&, Module<double>&);
template HEED_API void load(const std::filesystem::path&, Optimizer<float>&);
template HEED_API void load(const std::filesystem::path&, Optimizer<double>&);

}}}  // namespace heed::v0::nn
