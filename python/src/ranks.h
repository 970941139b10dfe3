// Ranks as Python objects.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>

#include "heed/core/function_ref.h"
#include "heed/distributed/attention.h"
#include "heed/distributed/communicator.h"

namespace heed::python {

namespace nb = nanobind;

// One rank's view of all ranks, until end().
class Ranks {
 public:
  explicit Ranks(std::unique_ptr<Communicator> owned)
      : owned_(std::move(owned)), ranks_(owned_.get()) {}
  explicit Ranks(Communicator* borrowed) : ranks_(borrowed) {}
  // A view of `of`, which must outlive it, for calls with this division.
  Ranks(const Ranks& of, distributed::DividedBy by) : of_(&of), divided_by_(by) {}

  // @throws InvalidArgument after end().
  Communicator& get() const;
  distributed::Ranks divided() const { return {get(), divided_by_}; }
  void end() noexcept { ranks_ = nullptr; }

 private:
  const Ranks* of_ = nullptr;
  distributed::DividedBy divided_by_ = distributed::DividedBy::kAutomatic;
  std::unique_ptr<Communicator> owned_;
  Communicator* ranks_ = nullptr;
};

// Reads "automatic", "tokens" or "heads".
// @throws InvalidArgument for any other name.
distributed::DividedBy divided_by_named(const std::string& name);

// run_on_all() for a part that runs with the GIL and may raise. A ValueError is raised on all ranks
// with the same text. Any other Python exception is raised on its own rank; the other ranks raise a
// RuntimeError with its type and text.
void on_all(Communicator& ranks, FunctionRef<void()> part);

}  // namespace heed::python
