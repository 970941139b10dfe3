#include "train/interrupt.h"

namespace heed::cli {

namespace {

volatile std::sig_atomic_t noted_signal = 0;

extern "C" void note_signal(int signal) { noted_signal = signal; }

}  // namespace

InterruptGuard::InterruptGuard() {
  noted_signal = 0;
  struct sigaction action {};
  action.sa_handler = note_signal;
  // A signal that was ignored at the program's start, as nohup does, stays ignored.
  const auto install = [&action](int signal, struct sigaction& old) {
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
    ::sigaction(signal, nullptr, &old);
    if (old.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);
  };
  install(SIGINT, old_interrupt_);
  install(SIGTERM, old_terminate_);
}

InterruptGuard::~InterruptGuard() {
  ::sigaction(SIGINT, &old_interrupt_, nullptr);
  ::sigaction(SIGTERM, &old_terminate_, nullptr);
}

int InterruptGuard::signal() noexcept { return noted_signal; }

}  // namespace heed::cli
