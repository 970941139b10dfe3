// Opens the checkpoint IN and writes its tensors as floats to OUT, a safetensors file.
#include <exception>
#include <iostream>
#include <map>
#include <string>

#include "heed/io/safetensors.h"
#include "heed/models/checkpoint.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    const auto checkpoint = heed::models::Checkpoint::open(argv[1]);
    std::map<std::string, heed::Tensor<float>> tensors;
    for (const std::string& name : checkpoint.names()) {
      tensors.emplace(name, heed::models::to_float(checkpoint.tensor(name)));
    }
    std::map<std::string, heed::AnyView> views;
    for (const auto& [name, tensor] : tensors) views.emplace(name, tensor.view());
    heed::write_safetensors(argv[2], views);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
