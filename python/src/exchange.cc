#include "exchange.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "heed/core/shape.h"

namespace heed::python::exchange {

namespace {

// The layouts of the following structs are DLPack's.
struct ManagedTensor {
  std::uint32_t major;
  std::uint32_t minor;
  void* context;
  void (*destroy)(ManagedTensor* self);
  std::uint64_t flags;
  nb::dlpack::dltensor tensor;
};

struct Table {
  std::uint32_t major;
  std::uint32_t minor;
  const Table* older;
  int (*allocate)(nb::dlpack::dltensor*, ManagedTensor**, void*,
                  void (*)(void*, const char*, const char*));
  int (*managed_of_object)(void* object, ManagedTensor** result);
  int (*object_of_managed)(ManagedTensor* managed, void** result);
  int (*look_at_object)(void* object, nb::dlpack::dltensor* result);  // may be null
};

constexpr std::uint32_t kMajor = 1;
constexpr std::uint32_t kMinor = 1;
constexpr std::int32_t kCpu = nb::device::cpu::value;

const Table* find_table() {
  const nb::object capsule = nb::getattr(nb::module_::import_("torch").attr("Tensor"),
                                         "__dlpack_c_exchange_api__", nb::none());
  if (capsule.is_none()) return nullptr;
  const void* pointer = PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api");
  if (pointer == nullptr) {
    PyErr_Clear();
    return nullptr;
  }
  const auto* table = static_cast<const Table*>(pointer);
  while (table != nullptr && table->major != kMajor) table = table->older;
  return table;
}

// Two threads may both look it up: one that waited for the other would hold the GIL that the other
// needs.
const Table* pytorch_table() {
  static std::atomic<const Table*> table{nullptr};
  static std::atomic<bool> is_known{false};
  if (!is_known) {
    table = find_table();
    is_known = true;
  }
  return table;
}

// A tensor that PyTorch takes over.
struct Given {
  ManagedTensor managed;
  Elements elements;
  std::array<std::int64_t, kMaxRank> extents;
  std::array<std::int64_t, kMaxRank> strides;
};

void destroy_given(ManagedTensor* managed) {
  const std::unique_ptr<Given> given(static_cast<Given*>(managed->context));
  given->elements.destroy(given->elements.owner);
}

std::unique_ptr<Given> given_of(const Elements& elements) {
  auto given = std::make_unique<Given>();
  given->elements = elements;
  const std::size_t rank = elements.extents.size();
  std::int64_t stride = 1;
  for (std::size_t dim = rank; dim-- > 0;) {
    given->extents[dim] = static_cast<std::int64_t>(elements.extents[dim]);
    given->strides[dim] = stride;
    stride *= std::max<std::int64_t>(given->extents[dim], 1);
  }
  given->managed = {.major = kMajor,
                    .minor = kMinor,
                    .context = given.get(),
                    .destroy = &destroy_given,
                    .flags = 0,
                    .tensor = {.data = elements.data,
                               .device = {.device_type = kCpu, .device_id = 0},
                               .ndim = static_cast<std::int32_t>(rank),
                               .dtype = elements.type,
                               .shape = given->extents.data(),
                               .strides = given->strides.data(),
                               .byte_offset = 0}};
  return given;
}

}  // namespace

bool is_available() { return pytorch_table() != nullptr; }

std::optional<nb::dlpack::dltensor> look_at(nb::handle tensor) {
  const Table* table = pytorch_table();
  if (table == nullptr || table->look_at_object == nullptr) return std::nullopt;
  nb::dlpack::dltensor found;
  if (table->look_at_object(tensor.ptr(), &found) == 0) return found;
  PyErr_Clear();
  return std::nullopt;
}

std::optional<nb::ndarray<nb::ro, nb::device::cpu>> to_array(nb::handle tensor) {
  constexpr std::int32_t kLargestRank = 16;
  const auto found = look_at(tensor);
  if (!found || found->device.device_type != kCpu || found->ndim > kLargestRank) {
    return std::nullopt;
  }
  std::array<std::size_t, kLargestRank> extents{};
  std::copy_n(found->shape, found->ndim, extents.begin());
  return nb::ndarray<nb::ro, nb::device::cpu>(found->data, static_cast<std::size_t>(found->ndim),
                                              extents.data(), tensor, found->strides, found->dtype,
                                              kCpu, 0, '\0', found->byte_offset);
}

nb::object to_tensor(const Elements& elements) {
  void* result = nullptr;
  // PyTorch takes ownership even if it then fails.
  if (pytorch_table()->object_of_managed(&given_of(elements).release()->managed, &result) != 0) {
    throw nb::python_error();
  }
  return nb::steal(static_cast<PyObject*>(result));
}

}  // namespace heed::python::exchange
