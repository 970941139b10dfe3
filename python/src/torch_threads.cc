// Loops on PyTorch's threads. These threads, like heed's own, spin for a while before they sleep:
// two thread pools that take turns would occupy each other's processors.
#include <dlfcn.h>
#include <nanobind/nanobind.h>
#include <pthread.h>

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <type_traits>

#include "bindings.h"
#include "heed/core/parallel.h"

namespace heed::python {

namespace {

namespace nb = nanobind;

// The functions that every OpenMP implementation for GCC's code has: the entry of a parallel
// region, which runs on the calling thread and on further ones, and two queries.
struct OpenMp {
  void (*parallel)(void (*body)(void*), void* data, unsigned num_threads, unsigned flags);
  int (*max_threads)();
  int (*thread_num)();
  int (*pause)(int kind);  // ends the threads kept for the caller; null before OpenMP 5
};

// The OpenMP implementation of PyTorch, if PyTorch is loaded and uses it; a process may have
// several.
std::optional<OpenMp> openmp_of_torch() {
  void* torch = ::dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
  if (torch == nullptr) return std::nullopt;
  OpenMp found{};
  const auto find = [torch](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(torch, name));
    return function != nullptr;
  };
  const bool has_all = find("GOMP_parallel", found.parallel) &&
                       find("omp_get_max_threads", found.max_threads) &&
                       find("omp_get_thread_num", found.thread_num);
  find("omp_pause_resource_all", found.pause);
  ::dlclose(torch);
  if (!has_all) return std::nullopt;
  return found;
}

// OpenMP keeps threads for each thread that enters a region. In a forked process these threads do
// not exist, but OpenMP waits for them in every loop, including PyTorch's own. So they are ended
// before a fork, and both processes create new ones.
std::atomic<int (*)(int kind)> pause_openmp = nullptr;
constexpr int kPauseSoft = 1;  // of OpenMP's omp_pause_resource_t

// True if this process was forked from one that kept its threads.
std::atomic<bool> lacks_threads = false;
std::atomic<bool> forks_without_threads = false;

void before_fork() {
  const auto pause = pause_openmp.load();
  forks_without_threads = pause != nullptr && pause(kPauseSoft) == 0;
}

void after_fork_in_child() {
  if (!forks_without_threads) lacks_threads = true;
}

// OpenMP keeps separate threads for each thread that enters a region. Only the loops of one thread
// run on OpenMP's threads; those of others run on heed's own.
class TorchThreads final : public Executor {
 public:
  explicit TorchThreads(const OpenMp& openmp) : openmp_(openmp) {}

  int num_threads() const override { return default_executor().num_threads(); }

  void run(int count, FunctionRef<void()> work) override {
    // The number of threads in PyTorch's regions: a smaller region would make OpenMP end the rest,
    // and a larger one ends the process if threads cannot be started.
    const int all = openmp_.max_threads();
    if (lacks_threads || std::this_thread::get_id() != thread_ || count > all) {
      return default_executor().run(count, work);
    }
    Region region{work, openmp_, count};
    openmp_.parallel(&Region::enter, &region, static_cast<unsigned>(all), 0);
  }

 private:
  struct Region {
    FunctionRef<void()> work;
    const OpenMp& openmp;
    int count;

    static void enter(void* data) {
      const auto& region = *static_cast<Region*>(data);
      if (region.openmp.thread_num() < region.count) region.work();
    }
  };

  OpenMp openmp_;
  std::thread::id thread_ = std::this_thread::get_id();
};

// Runs heed's loops on PyTorch's threads if the calling thread starts them. Returns whether that is
// possible.
bool share_torch_threads(bool is_shared) {
  const auto openmp = is_shared ? openmp_of_torch() : std::nullopt;
  if (openmp) pause_openmp = openmp->pause;
  set_executor(openmp ? std::make_shared<TorchThreads>(*openmp) : nullptr);
  return openmp.has_value();
}

}  // namespace

void bind_torch_threads(nb::module_& module) {
  ::pthread_atfork(&before_fork, nullptr, &after_fork_in_child);
  module.def("share_torch_threads", &share_torch_threads, nb::arg("is_shared"));
}

}  // namespace heed::python
