/// The states of modules and optimisers in safetensors files.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "heed/core/config.h"
#include "heed/io/safetensors.h"
#include "heed/nn/module.h"
#include "heed/nn/optimizer.h"

namespace heed { inline namespace v0 { namespace nn {

/// Entries of a file besides its tensors.
using Metadata = std::map<std::string, std::string>;

/// Writes a state dict to a safetensors file, which is replaced as a whole as by
/// write_safetensors(). PyTorch's safetensors.torch.load_file reads it.
/// @throws InvalidArgument when a name occurs twice, and as write_safetensors().
/// @throws IoError as write_safetensors().
HEED_API void save(const std::filesystem::path& path, const StateDict& state,
                   const Metadata& metadata = {});
template <class T>
void save(const std::filesystem::path& path, const Module<T>& module,
          const Metadata& metadata = {}) {
  save(path, module.state_dict(), metadata);
}
template <class T>
void save(const std::filesystem::path& path, const Optimizer<T>& optimizer,
          const Metadata& metadata = {}) {
  save(path, optimizer.state_dict(), metadata);
}

/// The tensors of `file` whose names begin with `prefix`, which is removed. They are views: `file`
/// must outlive them.
HEED_API StateDict state_dict(const Safetensors& file, const std::string& prefix = "");

/// Loads a file that save() or PyTorch's safetensors.torch.save_file wrote.
/// @throws InvalidArgument, before anything is written, naming the file and all tensors that do not
/// fit.
/// @throws FormatError, IoError as read_safetensors().
template <class T>
HEED_API void load(const std::filesystem::path& path, Module<T>& module);
template <class T>
HEED_API void load(const std::filesystem::path& path, Optimizer<T>& optimizer);

}}}  // namespace heed::v0::nn
