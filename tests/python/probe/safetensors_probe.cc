// Reads the safetensors file IN and writes its contents to OUT.
#include <exception>
#include <iostream>
#include <map>
#include <string>

#include "heed/io/safetensors.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    const heed::Safetensors file = heed::read_safetensors(argv[1]);
    std::map<std::string, heed::AnyView> tensors;
    for (const auto& [name, tensor] : file.tensors) tensors.emplace(name, view(tensor));
    heed::write_safetensors(argv[2], tensors, file.metadata);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
