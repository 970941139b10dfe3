// Small models with random weights, in folders as transformers saves them.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "heed/core/tensor.h"
#include "heed/models/config.h"

namespace heed::testing_support {

// Owns the folder and removes it.
class TinyModel {
 public:
  explicit TinyModel(models::Family family);
  ~TinyModel();
  TinyModel(const TinyModel&) = delete;
  TinyModel& operator=(const TinyModel&) = delete;

  const std::filesystem::path& folder() const noexcept { return folder_; }
  // Replaces a file of the folder.
  void write(const std::string& name, const std::string& text) const;
  std::string read(const std::string& name) const;
  // Replaces model.safetensors by a changed one.
  void change_tensors(
      const std::function<void(std::map<std::string, Tensor<float>>&)>& change) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace heed::testing_support
