#include "ranks.h"

#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <future>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bindings.h"
#include "call.h"
#include "heed/core/error.h"
#include "heed/distributed/thread_ranks.h"

namespace heed::python {

namespace {

// Formats e.g. "LookupError: no such slope".
std::string type_and_text(const nb::python_error& error) {
  const std::string type = nb::str(error.type().attr("__name__")).c_str();
  const std::string text = text_of(error);
  return text == type ? type : fmt::format("{}: {}", type, text);
}

[[noreturn]] void throw_in_words(const nb::python_error& error) {
  if (error.matches(PyExc_ValueError)) throw InvalidArgument(text_of(error));
  if (error.matches(PyExc_MemoryError)) throw std::bad_alloc();
  throw std::runtime_error(type_and_text(error));
}

nb::object run_function_on_all(const Ranks& ranks, const nb::callable& function) {
  nb::object result;
  on_all(ranks.get(), [&] { result = call_function(function, nb::tuple()); });
  return result;
}

// The exception of one rank's function, as text for the others.
class RaisedByRank : public std::runtime_error {
 public:
  RaisedByRank(int rank, const std::string& text) : std::runtime_error(text), rank_(rank) {}
  std::size_t rank() const noexcept { return static_cast<std::size_t>(rank_); }

 private:
  int rank_;
};

// Runs a function on ranks that are threads, and keeps what it returns or raises.
class FunctionOnThreads {
 public:
  FunctionOnThreads(int size, nb::handle function)
      : size_(size), function_(function), ends_(static_cast<std::size_t>(std::max(size, 0))) {}

  // Called without the GIL.
  void run() {
    run_thread_ranks(size_, [this](Communicator& ranks) { call(ranks); });
  }

  nb::list results() const {
    nb::list list;
    for (const End& end : ends_) list.append(end.result);
    return list;
  }
  [[noreturn]] void raise(const RaisedByRank& by) { throw *std::move(ends_[by.rank()].raised); }

 private:
  struct End {
    nb::object result;
    std::optional<nb::python_error> raised;
  };

  // The view of a rank ends with its function, even if Python keeps it.
  class View {
   public:
    explicit View(Communicator& ranks)
        : ranks_(nb::cast(new Ranks(&ranks), nb::rv_policy::take_ownership)) {}
    ~View() { nb::inst_ptr<Ranks>(ranks_)->end(); }
    View(const View&) = delete;
    View& operator=(const View&) = delete;

    const nb::object& object() const { return ranks_; }

   private:
    nb::object ranks_;
  };

  void call(Communicator& ranks) {
    const Locked locked;
    End& end = ends_[static_cast<std::size_t>(ranks.rank())];
    try {
      const View view(ranks);
      end.result = call_function(function_, nb::make_tuple(view.object()));
    } catch (nb::python_error& error) {
      const std::string text = type_and_text(error);
      end.raised.emplace(std::move(error));
      throw RaisedByRank(ranks.rank(), text);
    }
  }

  int size_;
  nb::handle function_;
  std::vector<End> ends_;
};

// Waits on the thread that called from Python, which handles Ctrl-C in the meantime.
void run_on_other_thread(FunctionOnThreads& calls) {
  constexpr std::chrono::milliseconds kBetweenLooks{20};
  Call call;
  std::future<void> end;
  {
    const Unlocked unlocked(call);
    std::packaged_task<void()> task([&] {
      const CancellationScope scope(&call);
      calls.run();
    });
    end = task.get_future();
    std::thread thread(std::move(task));
    while (end.wait_for(kBetweenLooks) != std::future_status::ready) call.poll();
    thread.join();
  }
  call.raise_failure();
  end.get();
}

nb::list run_threads(int size, const nb::callable& function) {
  FunctionOnThreads calls(size, function);
  try {
    run_on_other_thread(calls);
  } catch (const RaisedByRank& by) {
    calls.raise(by);
  }
  return calls.results();
}

// Ranks from the processes of an mpi4py.MPI.Intracomm that only heed uses.
nb::object mpi_ranks(nb::object comm, nb::object module) {
  auto ranks = std::make_unique<MpiRanks>(std::move(comm), std::move(module));
  return nb::cast(new Ranks(std::move(ranks)), nb::rv_policy::take_ownership);
}

}  // namespace

Communicator& Ranks::get() const {
  if (of_ != nullptr) return of_->get();
  if (ranks_ != nullptr) return *ranks_;
  throw InvalidArgument(
      "Ranks: these ranks have ended, expected those of a function that run_threads still calls, "
      "or "
      "of a communicator that is not freed");
}

distributed::DividedBy divided_by_named(const std::string& name) {
  using distributed::DividedBy;
  for (const DividedBy by : {DividedBy::kAutomatic, DividedBy::kTokens, DividedBy::kHeads}) {
    if (to_string(by) == name) return by;
  }
  throw InvalidArgument(fmt::format(
      "distributed: divided_by is '{}', expected 'automatic', 'tokens' or 'heads'", name));
}

void on_all(Communicator& ranks, FunctionRef<void()> part) {
  std::optional<nb::python_error> raised;
  const auto told = [&] {
    const Locked locked;
    try {
      part();
    } catch (nb::python_error& error) {
      raised.emplace(std::move(error));
      throw_in_words(*raised);
    }
  };
  try {
    without_lock([&] {
      run_on_all(ranks, told);
      return true;
    });
  } catch (const InvalidArgument&) {
    if (raised && ranks.size() == 1) throw *std::move(raised);
    throw;
  } catch (const std::exception&) {
    if (raised) throw *std::move(raised);
    throw;
  }
}

void bind_ranks(nb::module_& module) {
  const nb::exception<CommunicationError> lost(module, "CommunicationError", PyExc_RuntimeError);
  nb::setattr(lost, "__doc__",
              nb::str("A message cannot arrive, for another rank failed or is gone."));
  nb::class_<Ranks>(module, "Ranks", "One rank's view of all of them.")
      .def_prop_ro(
          "rank", [](const Ranks& self) { return self.get().rank(); }, "0 <= rank < size")
      .def_prop_ro(
          "size", [](const Ranks& self) { return self.get().size(); }, "How many ranks there are.")
      .def(
          "_divided",
          [](const Ranks& self, const std::string& by) {
            return std::make_unique<Ranks>(self, divided_by_named(by));
          },
          nb::arg("by"), nb::keep_alive<0, 1>(), "The same, for calls that are divided so.")
      .def("_end", &Ranks::end, "Whatever is asked of them from now on is refused.");
  module.def("mpi_ranks", &mpi_ranks, nb::arg("comm"), nb::arg("module"));
  module.def("run_on_all", &run_function_on_all, nb::arg("ranks"), nb::arg("function"));
  module.def(
      "gather_texts",
      [](const Ranks& ranks, const std::string& text) {
        Communicator& all = ranks.get();
        return without_lock([&] { return gather_texts(all, text); });
      },
      nb::arg("ranks"), nb::arg("text"), "What every rank says, in the order of ranks.");
  module.def("run_threads", &run_threads, nb::arg("size"), nb::arg("function"));
}

}  // namespace heed::python
