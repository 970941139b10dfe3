// Ranks as Python holds them.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>

#include "heed/core/function_ref.h"
#include "heed/distributed/attention.h"
#include "heed/distributed/communicator.h"

namespace heed::python {

namespace nb = nanobind;

// One rank's view of all of them, for as long as it lasts.
class Ranks {
 public:
  explicit Ranks(std::unique_ptr<Communicator> owned)
      : owned_(std::move(owned)), ranks_(owned_.get()) {}
  explicit Ranks(Communicator* borrowed) : ranks_(borrowed) {}
  // The same, which must live as long, for calls that are divided so.
  Ranks(const Ranks& of, distributed::DividedBy by) : of_(&of), divided_by_(by) {}

  // @throws InvalidArgument when they have ended.
  Communicator& get() const;
  distributed::Ranks divided() const { return {get(), divided_by_}; }
  void end() noexcept { ranks_ = nullptr; }

 private:
  const Ranks* of_ = nullptr;
  distributed::DividedBy divided_by_ = distributed::DividedBy::kAutomatic;
  std::unique_ptr<Communicator> owned_;
  Communicator* ranks_ = nullptr;
};

// "automatic", "tokens" or "heads". @throws InvalidArgument
distributed::DividedBy divided_by_named(const std::string& name);

// run_on_all() of a part that is called with the interpreter's lock and may raise. A ValueError is
// one on all ranks, with the same text. Any other exception of Python's is raised where it was; the
// others raise a RuntimeError that has its type and text.
void on_all(Communicator& ranks, FunctionRef<void()> part);

}  // namespace heed::python
