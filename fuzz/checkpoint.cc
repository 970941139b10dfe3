// A checkpoint of arbitrary bytes: it is accepted, or refused without a change to the run.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "heed/core/error.h"
#include "heed/nn/layers.h"
#include "heed/nn/optimizer.h"
#include "heed/nn/state_file.h"
#include "heed/nn/trainer.h"

namespace {

namespace nn = heed::nn;

// A file in memory.
class MemoryFile {
 public:
  MemoryFile(const std::uint8_t* data, std::size_t size) : descriptor_(memfd_create("fuzz", 0)) {
    if (write(descriptor_, data, size) != static_cast<ssize_t>(size)) std::abort();
  }
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

std::string bytes_of(const nn::Module<float>& module) {
  std::string bytes;
  for (const auto& [name, parameter] : module.named_parameters()) {
    const heed::FloatView values = parameter.value();
    bytes.append(reinterpret_cast<const char*>(values.data()),
                 static_cast<std::size_t>(values.num_elements()) * sizeof(float));
  }
  return bytes;
}

template <class Load>
bool is_taken(const Load& load) {
  try {
    load();
    return true;
  } catch (const heed::InvalidArgument&) {
  } catch (const heed::FormatError&) {
  }
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const MemoryFile file(data, size);
  nn::Linear<float> model(3, 2);
  nn::Adam<float> optimizer(model.parameters());
  nn::Trainer<float> trainer(model, optimizer,
                             {.schedule = {.total_steps = 10}, .checkpoint = file.path()});
  const std::string before = bytes_of(model);
  if (!is_taken([&] { trainer.resume(); }) && (bytes_of(model) != before || trainer.step() != 0)) {
    std::abort();
  }
  is_taken([&] { nn::load(file.path(), model); });
  is_taken([&] { nn::load(file.path(), optimizer); });
  return 0;
}
