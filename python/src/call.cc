#include "call.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>

namespace heed::python {

namespace {

// True once the interpreter ends; the thread that ends it is then known.
std::atomic<bool> is_ending = false;
std::thread::id ending_thread;  // valid once is_ending is true

// The number of Locked objects that exist in all threads, and in this thread.
std::atomic<int> num_locked = 0;
thread_local int num_locked_here = 0;

[[noreturn]] void wait_for_ever() noexcept {
  for (;;) pause();
}

// Returns the result of take(), or never if it throws.
template <class Take>
auto taken_or_never(Take take) noexcept {
  try {
    return take();
  } catch (...) {
    wait_for_ever();
  }
}

bool is_main_thread() {
  const nb::module_ threading = nb::module_::import_("threading");
  return threading.attr("main_thread")().is(threading.attr("current_thread")());
}

// Stops the computations of daemon threads, and lets them leave the interpreter before it is gone.
void end_calls() {
  ending_thread = std::this_thread::get_id();
  is_ending = true;
  const nb::gil_scoped_release released;
  // The longest wait, because a function of the caller may take any time.
  constexpr int kMilliseconds = 2000;
  for (int i = 0; i < kMilliseconds && num_locked != num_locked_here; ++i) usleep(1000);
}

}  // namespace

bool Call::is_abandoned() const noexcept { return is_ending && ending_thread != thread_; }

void Call::poll() noexcept {
  if (is_abandoned() || (outer_ != nullptr && outer_->is_requested())) return request();
  if (!may_handle_signals_ || std::this_thread::get_id() != thread_) return;
  const Clock::time_point now = Clock::now();
  const bool is_first = next_poll_ == Clock::time_point();
  if (now < next_poll_) return;
  next_poll_ = now + kInterval;
  if (is_first) return;
  const Locked locked;
  if (is_abandoned()) return request();
  try {
    may_handle_signals_ = is_main_thread();
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  } catch (...) {
    fail();
  }
}

void Call::fail() noexcept {
  if (failure_ == nullptr) failure_ = std::current_exception();
  request();
}

void Call::raise_failure() const {
  if (failure_ != nullptr) std::rethrow_exception(failure_);
}

Locked::Locked() : state_(taken_or_never([] { return PyGILState_Ensure(); })) {
  ++num_locked;
  ++num_locked_here;
}

Locked::~Locked() {
  --num_locked_here;
  --num_locked;
  PyGILState_Release(state_);
}

Unlocked::~Unlocked() {
  if (call_.is_abandoned()) wait_for_ever();
  taken_or_never([this] { PyEval_RestoreThread(state_); });
}

nb::object call_function(nb::handle function, const nb::tuple& arguments) {
  PyObject* result =
      taken_or_never([&] { return PyObject_CallObject(function.ptr(), arguments.ptr()); });
  if (result == nullptr) throw nb::python_error();
  return nb::steal(result);
}

std::string text_of(const nb::python_error& error) {
  const std::string text = nb::str(error.value()).c_str();
  return text.empty() ? nb::str(error.type().attr("__name__")).c_str() : text;
}

void end_calls_at_exit() {
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&end_calls));
  // A forked child has only the forking thread.
  pthread_atfork(nullptr, nullptr, [] { num_locked = num_locked_here; });
}

}  // namespace heed::python
