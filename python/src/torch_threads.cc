// Loops on the threads that PyTorch computes on. Its threads, like heed's own, look out for the
// next loop for a while before they sleep: two pools that take turns would keep each other's
// processors.
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

// What every implementation of OpenMP that GCC's code can call has: the entry of a parallel region,
// which runs on the thread that calls it and on so many others, and two questions.
struct OpenMp {
  void (*parallel)(void (*body)(void*), void* data, unsigned num_threads, unsigned flags);
  int (*max_threads)();
  int (*thread_num)();
  int (*pause)(int kind);  // ends the threads kept for the one that calls; null before OpenMP 5
};

// That of PyTorch, if PyTorch is loaded and computes by one: a process may have several.
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

// OpenMP keeps threads for each thread that enters a region, and does not notice that a forked
// process has none of them: it would wait for them in every loop, PyTorch's own among these. So a
// process forks without them, and both make new ones.
std::atomic<int (*)(int kind)> pause_openmp = nullptr;
constexpr int kPauseSoft = 1;  // of OpenMP's omp_pause_resource_t

// Whether this process was forked from one that kept its threads.
std::atomic<bool> lacks_threads = false;
std::atomic<bool> forks_without_threads = false;

void before_fork() {
  const auto pause = pause_openmp.load();
  forks_without_threads = pause != nullptr && pause(kPauseSoft) == 0;
}

void after_fork_in_child() {
  if (!forks_without_threads) lacks_threads = true;
}

// For each thread that enters a region OpenMP keeps others: the loops of one thread run on them,
// those of others on heed's own.
class TorchThreads final : public Executor {
 public:
  explicit TorchThreads(const OpenMp& openmp) : openmp_(openmp) {}

  int num_threads() const override { return default_executor().num_threads(); }

  void run(int count, FunctionRef<void()> work) override {
    // As many as PyTorch's regions have: OpenMP ends the threads that a smaller one leaves out, and
    // the process where it cannot start those of a larger one.
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

// Whether heed's loops run on PyTorch's threads from now on, where the calling thread starts them.
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
