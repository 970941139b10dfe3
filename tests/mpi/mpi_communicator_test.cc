// Run by mpirun: every rank runs every test, in the same order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "distributed/communicator_contract.h"
#include "heed/core/cancellation.h"
#include "heed/core/error.h"
#include "heed/mpi.h"

namespace heed { namespace {

using testing::HasSubstr;
using testing::StrEq;
using testing::ThrowsMessage;
using testing_support::bytes_of;
using testing_support::check_contract;
using testing_support::numbers_of;
using testing_support::room_in;

MpiSession* session = nullptr;

TEST(MpiCommunicator, KeepsTheContract) {
  MpiCommunicator ranks(MPI_COMM_WORLD);
  check_contract(ranks);
}

TEST(MpiCommunicator, KeepsTheContractInPieces) {
  {
    MpiCommunicator ranks(MPI_COMM_WORLD, {.piece_bytes = 40'000});  // 280,000 bytes: 7 pieces
    check_contract(ranks);
  }
  for (const std::size_t bytes : {60, 400}) {
    MpiCommunicator ranks(MPI_COMM_WORLD, {.piece_bytes = bytes});
    testing_support::check_broadcasts(ranks);
    testing_support::check_gathers(ranks);
    testing_support::check_texts(ranks);
  }
}

TEST(MpiCommunicator, DoesNotMeetOtherMessagesOfTheProgram) {
  MpiCommunicator one(MPI_COMM_WORLD), other(MPI_COMM_WORLD);
  if (one.size() == 1) return;
  std::vector<int> room(1);
  if (one.rank() == 0) {
    const auto first = one.send(bytes_of({1}), 1, 0);
    other.send(bytes_of({2}), 1, 0)->wait();
    first->wait();
  } else if (one.rank() == 1) {
    other.receive(room_in(room), 0, 0)->wait();
    EXPECT_EQ(room[0], 2);
    one.receive(room_in(room), 0, 0)->wait();
    EXPECT_EQ(room[0], 1);
  }
}

TEST(MpiCommunicator, RefusesWrongArguments) {
  EXPECT_THAT([] { MpiCommunicator(MPI_COMM_WORLD, {.piece_bytes = 0}); },
              ThrowsMessage<InvalidArgument>(
                  StrEq("MpiCommunicator: piece_bytes is 0, expected 1 to 2147483647")));
  MpiCommunicator ranks(MPI_COMM_WORLD);
  const int size = ranks.size();
  EXPECT_THAT([&] { static_cast<void>(ranks.send({}, size, 0)); },
              ThrowsMessage<InvalidArgument>(HasSubstr("send: to is " + std::to_string(size))));
  EXPECT_THAT([&] { static_cast<void>(ranks.receive({}, ranks.rank(), 0)); },
              ThrowsMessage<InvalidArgument>(HasSubstr("the rank itself, expected another")));
  EXPECT_THAT([&] { static_cast<void>(ranks.broadcast({}, -1)); },
              ThrowsMessage<InvalidArgument>(HasSubstr("broadcast: root is -1")));
  std::vector<int> room(1);
  EXPECT_THAT([&] { ranks.gather({}, room_in(room)); },
              ThrowsMessage<InvalidArgument>(HasSubstr("gather: all has 4 bytes, expected 0")));
  if (size == 1) return;
  EXPECT_THAT([&] { static_cast<void>(ranks.send({}, (ranks.rank() + 1) % size, -1)); },
              ThrowsMessage<InvalidArgument>(StrEq("send: tag is -1, expected 0 to 32767")));
}

TEST(MpiCommunicator, AReceiverIsToldOfAnotherLength) {
  // Messages in pieces: more of them than expected, fewer, and a different last one.
  for (const std::size_t sent : {3, 16, 17, 40}) {
    MpiCommunicator ranks(MPI_COMM_WORLD, {.piece_bytes = 32});
    if (ranks.rank() == 0 && ranks.size() > 1) {
      ranks.send(bytes_of(numbers_of(0, 0, sent)), 1, 7)->wait();
    } else if (ranks.rank() == 1) {
      std::vector<int> room(24);
      EXPECT_THAT(
          [&] { ranks.receive(room_in(room), 0, 7)->wait(); },
          ThrowsMessage<CommunicationError>(HasSubstr("rank 1: receive from rank 0 with tag 7: ")));
    }
    ranks.gather({}, {});
    testing_support::check_gathers(ranks);
  }
}

TEST(MpiCommunicator, AReceiptThatAnExceptionLeavesIsWithdrawn) {
  MpiCommunicator ranks(MPI_COMM_WORLD);
  if (ranks.size() == 1) return;
  std::vector<int> room(3);
  const auto leave = [&] {
    const auto lost = ranks.receive(room_in(room), (ranks.rank() + 1) % ranks.size(), 4);
    throw std::runtime_error("leaves");
  };
  EXPECT_THROW(leave(), std::runtime_error);
  check_contract(ranks);
}

TEST(MpiCommunicator, ACancellationEndsWaiting) {
  MpiCommunicator ranks(MPI_COMM_WORLD);
  if (ranks.size() == 1) return;
  Cancellation cancellation;
  const CancellationScope scope(&cancellation);
  testing_support::check_ring(ranks);
  cancellation.request();
  std::vector<int> room(3);
  EXPECT_THROW(ranks.receive(room_in(room), (ranks.rank() + 1) % ranks.size(), 4)->wait(),
               Cancelled);
}

TEST(MpiSession, WhatAllThrowIsThrown) {
  const auto run = [] {
    session->run([](Communicator& ranks) {
      run_on_all(ranks, [&] {
        if (ranks.rank() == ranks.size() - 1) throw InvalidArgument("no such shape");
      });
    });
  };
  EXPECT_THAT(run, ThrowsMessage<InvalidArgument>(HasSubstr("no such shape")));
}

TEST(MpiSession, WhatOneThrowsAtTheEndTheOthersAreTold) {
  int rank = 0;
  const auto run = [&] {
    session->run([&](Communicator& ranks) {
      rank = ranks.rank();
      if (rank == ranks.size() - 1) throw InvalidArgument("no such shape");
    });
  };
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  try {
    run();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(rank, size - 1);
    EXPECT_STREQ(error.what(), "no such shape");
  } catch (const CommunicationError& error) {
    EXPECT_NE(rank, size - 1);
    EXPECT_EQ(error.what(), "rank " + std::to_string(size - 1) + " failed: no such shape");
  }
  session->run([](Communicator& ranks) { check_contract(ranks); });
}

TEST(MpiSession, ThreadsAreDividedAmongTheRanksOfAMachine) {
  const int threads = session->num_threads();
  EXPECT_GE(threads, 1);
  EXPECT_LE(threads, 4096);
}

}  // namespace
}  // namespace heed

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  heed::MpiSession mpi;
  heed::session = &mpi;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  // Only rank 0 reports passed tests; each rank reports failures by its exit code.
  if (rank != 0) {
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    class Failures : public testing::EmptyTestEventListener {
      void OnTestPartResult(const testing::TestPartResult& result) override {
        if (result.failed()) std::cerr << result << std::endl;
      }
    };
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new Failures);
  }
  return RUN_ALL_TESTS();
}
