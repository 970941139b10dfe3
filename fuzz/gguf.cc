// Arbitrary bytes are a GGUF file or give a FormatError. Keys have the requested type or are
// refused. Tensors are inside the bytes; those of types that heed computes with are converted to
// floats.
#include "heed/io/gguf.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "heed/core/error.h"
#include "heed/models/checkpoint.h"

namespace {

template <class Ask>
bool is_answered(const Ask& ask) {
  try {
    ask();
    return true;
  } catch (const heed::FormatError&) {
    return false;
  }
}

void ask_for(const heed::GgufFile& file, const std::string& key) {
  is_answered([&] { file.boolean(key); });
  is_answered([&] { file.integer(key); });
  is_answered([&] { file.number(key); });
  is_answered([&] { file.string(key); });
  is_answered([&] { file.integers(key); });
  is_answered([&] { file.numbers(key); });
  is_answered([&] { file.strings(key); });
}

void check(const heed::GgufFile& file, std::span<const std::byte> bytes) {
  for (const auto& [key, value] : file.metadata()) ask_for(file, key);
  ask_for(file, "no such key");
  for (const auto& [name, tensor] : file.tensors()) {
    if (tensor.bytes.empty()) continue;
    const std::ptrdiff_t begin = tensor.bytes.data() - bytes.data();
    if (begin != tensor.offset || begin + std::ssize(tensor.bytes) > std::ssize(bytes))
      std::abort();
  }
  is_answered([&] {
    const auto checkpoint = heed::models::Checkpoint::of(file);
    for (const auto& name : checkpoint.names()) {
      is_answered([&] { heed::models::to_float(checkpoint.tensor(name)); });
    }
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  is_answered([&] { check(heed::GgufFile::parse(bytes, "fuzz"), bytes); });
  return 0;
}
