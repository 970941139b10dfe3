// Tests of MpiRanks. Every process that mpirun started runs them in the same order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nanobind/nanobind.h>

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "call.h"
#include "distributed/communicator_contract.h"
#include "heed/core/error.h"
#include "ranks.h"

namespace heed::python { namespace {

using testing::HasSubstr;
using testing::StrEq;
using testing::ThrowsMessage;
using testing_support::bytes_of;
using testing_support::check_contract;
using testing_support::numbers_of;
using testing_support::room_in;

nb::object* world = nullptr;
nb::object* mpi4py = nullptr;

// The ranks of a duplicate of the communicator of all processes, which is freed at the end.
class OwnRanks {
 public:
  explicit OwnRanks(std::size_t piece_bytes = std::size_t{1} << 30) {
    const Locked locked;
    comm_ = world->attr("Dup")();
    ranks_ = std::make_unique<MpiRanks>(comm_, *mpi4py, piece_bytes);
  }
  ~OwnRanks() {
    const Locked locked;
    ranks_.reset();
    comm_.attr("Free")();
    comm_.reset();
  }
  OwnRanks(const OwnRanks&) = delete;
  OwnRanks& operator=(const OwnRanks&) = delete;

  MpiRanks& operator*() const { return *ranks_; }
  MpiRanks* operator->() const { return ranks_.get(); }

 private:
  nb::object comm_;
  std::unique_ptr<MpiRanks> ranks_;
};

TEST(MpiRanks, KeepTheContract) {
  const OwnRanks ranks;
  check_contract(*ranks);
}

TEST(MpiRanks, KeepTheContractInPieces) {
  {
    const OwnRanks ranks(40'000);  // 280,000 bytes are seven pieces
    check_contract(*ranks);
  }
  for (const std::size_t bytes : {60, 400}) {
    const OwnRanks ranks(bytes);
    testing_support::check_broadcasts(*ranks);
    testing_support::check_gathers(*ranks);
    testing_support::check_texts(*ranks);
  }
}

TEST(MpiRanks, RefuseWrongArguments) {
  {
    const Locked locked;
    EXPECT_THAT([] { MpiRanks(*world, *mpi4py, 0); },
                ThrowsMessage<InvalidArgument>(
                    StrEq("MpiRanks: piece_bytes is 0, expected 1 to 2147483647")));
  }
  const OwnRanks ranks;
  const int size = ranks->size();
  EXPECT_THAT([&] { static_cast<void>(ranks->send({}, size, 0)); },
              ThrowsMessage<InvalidArgument>(HasSubstr("send: to is " + std::to_string(size))));
  EXPECT_THAT([&] { static_cast<void>(ranks->receive({}, ranks->rank(), 0)); },
              ThrowsMessage<InvalidArgument>(HasSubstr("the rank itself, expected another")));
  EXPECT_THAT([&] { static_cast<void>(ranks->broadcast({}, -1)); },
              ThrowsMessage<InvalidArgument>(HasSubstr("broadcast: root is -1")));
  std::vector<int> room(1);
  EXPECT_THAT([&] { ranks->gather({}, room_in(room)); },
              ThrowsMessage<InvalidArgument>(HasSubstr("gather: all has 4 bytes, expected 0")));
}

TEST(MpiRanks, AReceiverIsToldOfAnotherLength) {
  // Messages in pieces: more of them than expected, fewer, and a different last one.
  for (const std::size_t sent : {3, 16, 17, 40}) {
    const OwnRanks ranks(32);
    if (ranks->rank() == 0 && ranks->size() > 1) {
      ranks->send(bytes_of(numbers_of(0, 0, sent)), 1, 7)->wait();
    } else if (ranks->rank() == 1) {
      std::vector<int> room(24);
      EXPECT_THAT(
          [&] { ranks->receive(room_in(room), 0, 7)->wait(); },
          ThrowsMessage<CommunicationError>(HasSubstr("rank 1: receive from rank 0 with tag 7: ")));
    }
    testing_support::check_gathers(*ranks);
  }
}

TEST(MpiRanks, AReceiptThatAnExceptionLeavesIsWithdrawn) {
  const OwnRanks ranks;
  if (ranks->size() == 1) return;
  std::vector<int> room(3);
  const auto leave = [&] {
    const auto lost = ranks->receive(room_in(room), (ranks->rank() + 1) % ranks->size(), 4);
    throw std::runtime_error("leaves");
  };
  EXPECT_THROW(leave(), std::runtime_error);
  check_contract(*ranks);
}

// The first rank fails while a long message is being sent that is not received: all ranks are
// aborted.
void leave_sending(nb::object comm, nb::object module) {
  world = &comm;
  mpi4py = &module;
  without_lock([] {
    const OwnRanks ranks;
    const std::vector<int> message(1 << 20);
    if (ranks->rank() == 0) {
      const auto lost = ranks->send(bytes_of(message), 1, 0);
      throw std::runtime_error("leaves");
    }
    return true;
  });
}

// Returns 0 if all tests pass.
int run_tests(nb::object comm, nb::object module) {
  world = &comm;
  mpi4py = &module;
  int count = 1;
  std::string name = "ranks_probe";
  std::vector<char*> arguments{name.data(), nullptr};
  testing::InitGoogleTest(&count, arguments.data());
  return without_lock([] { return RUN_ALL_TESTS(); });
}

}  // namespace
}  // namespace heed::python

NB_MODULE(ranks_probe, module) {  // NOLINT
  module.def("run_tests", &heed::python::run_tests);
  module.def("leave_sending", &heed::python::leave_sending);
}
