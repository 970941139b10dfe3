#include "heed/distributed/communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "distributed/communicator_contract.h"
#include "heed/core/cancellation.h"
#include "heed/core/error.h"
#include "heed/core/parallel.h"
#include "heed/core/random.h"
#include "heed/distributed/thread_ranks.h"
#include "support/refusal.h"

namespace heed { namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StrEq;
using testing::ThrowsMessage;
using testing_support::bytes_of;
using testing_support::Refuses;
using testing_support::room_in;

// Returns what each rank caught from `body`, "" if nothing. run_thread_ranks() sees no exception.
std::vector<std::string> caught_by_ranks(int size, const std::function<void(Communicator&)>& body) {
  std::vector<std::string> caught(static_cast<std::size_t>(size));
  run_thread_ranks(size, [&](Communicator& ranks) {
    try {
      body(ranks);
    } catch (const std::exception& error) {
      caught[static_cast<std::size_t>(ranks.rank())] = error.what();
    }
  });
  return caught;
}

TEST(ThreadRanks, EveryRankRunsOnce) {
  for (const int size : {1, 2, 5}) {
    std::vector<int> seen(static_cast<std::size_t>(size));
    run_thread_ranks(size, [&](Communicator& ranks) {
      EXPECT_EQ(ranks.size(), size);
      ++seen[static_cast<std::size_t>(ranks.rank())];
    });
    EXPECT_EQ(seen, std::vector<int>(static_cast<std::size_t>(size), 1));
  }
}

TEST(ThreadRanks, TheyKeepTheContract) {
  for (const int size : {1, 2, 3, 5}) {
    run_thread_ranks(size, [](Communicator& ranks) { testing_support::check_contract(ranks); });
  }
}

TEST(ThreadRanks, WrongArgumentsAreRefused) {
  run_thread_ranks(2, [](Communicator& ranks) {
    std::vector<int> room(3);
    const int me = ranks.rank();
    EXPECT_THAT(
        [&] { static_cast<void>(ranks.send({}, 2, 0)); },
        ThrowsMessage<InvalidArgument>(StrEq("send: to is 2, expected a rank from 0 to 1")));
    EXPECT_THAT([&] { static_cast<void>(ranks.send({}, me, 0)); },
                ThrowsMessage<InvalidArgument>(HasSubstr("the rank itself, expected another")));
    EXPECT_THAT([&] { static_cast<void>(ranks.receive({}, -1, 0)); }, Refuses("from", "-1"));
    EXPECT_THAT(
        [&] { static_cast<void>(ranks.receive({}, 1 - me, 32768)); },
        ThrowsMessage<InvalidArgument>(StrEq("receive: tag is 32768, expected 0 to 32767")));
    EXPECT_THAT([&] { static_cast<void>(ranks.broadcast({}, 2)); }, Refuses("root", "2"));
    EXPECT_THAT([&] { ranks.gather({}, room_in(room)); },
                ThrowsMessage<InvalidArgument>(
                    StrEq("gather: all has 12 bytes, expected 0, 0 for each of 2 ranks")));
  });
  EXPECT_THAT([] { run_thread_ranks(0, [](Communicator&) {}); }, Refuses("size", "0"));
}

TEST(ThreadRanks, AnotherLengthIsToldToBoth) {
  const auto caught = caught_by_ranks(2, [](Communicator& ranks) {
    std::vector<int> room(static_cast<std::size_t>(1 + ranks.rank()));
    if (ranks.rank() == 0) {
      ranks.send(bytes_of(room), 1, 0)->wait();
    } else {
      ranks.receive(room_in(room), 0, 0)->wait();
    }
  });
  constexpr const char* kText =
      "Communicator: rank 0 sends 4 bytes to rank 1, which expects 8 bytes";
  EXPECT_THAT(caught, ElementsAre(kText, kText));
}

TEST(ThreadRanks, DifferentCallsAreToldToAll) {
  const auto caught = caught_by_ranks(3, [](Communicator& ranks) {
    std::vector<int> room(1);
    ranks.broadcast(room_in(room), ranks.rank() == 1 ? 1 : 0)->wait();
    ranks.gather({}, {});
  });
  for (const std::string& text : caught) {
    EXPECT_THAT(text, AllOf(HasSubstr("broadcast of 4 bytes from rank 1"), HasSubstr("rank 1 "),
                            HasSubstr("broadcast of 4 bytes from rank 0")));
  }
}

TEST(ThreadRanks, WhoWaitsForARankThatEndedIsTold) {
  const auto caught = caught_by_ranks(2, [](Communicator& ranks) {
    std::vector<int> room(2);
    if (ranks.rank() == 0) ranks.receive(room_in(room), 1, 5)->wait();
  });
  EXPECT_THAT(caught,
              ElementsAre("Communicator: rank 0 waits to receive 8 bytes from rank 1 with tag "
                          "5, but rank 1 has ended",
                          ""));
}

TEST(ThreadRanks, WhenAllWaitAllAreTold) {
  const auto caught = caught_by_ranks(3, [](Communicator& ranks) {
    std::vector<int> room(1);
    if (ranks.rank() == 0) ranks.send(bytes_of(room), 1, 5)->wait();
    if (ranks.rank() == 1) ranks.receive(room_in(room), 0, 6)->wait();
    if (ranks.rank() == 2) ranks.receive(room_in(room), 1, 0)->wait();
  });
  for (const std::string& text : caught) {
    EXPECT_THAT(
        text,
        AllOf(HasSubstr("nobody can go on: rank 0 waits to send 4 bytes to rank 1 with tag 5"),
              HasSubstr("rank 1 waits to receive 4 bytes from rank 0 with tag 6"),
              HasSubstr("rank 2 waits to receive 4 bytes from rank 1 with tag 0")));
  }
}

TEST(ThreadRanks, ARankThatThrowsIsToldToTheOthersAndTheCaller) {
  for (const int failing : {0, 1, 2}) {
    std::atomic<int> num_told = 0;
    const auto run = [&] {
      run_thread_ranks(3, [&](Communicator& ranks) {
        std::vector<int> room(1000);
        const std::string text = "rank " + std::to_string(failing) + " failed: no such shape";
        if (ranks.rank() == failing) {
          const auto under_way = ranks.send(bytes_of(room), (failing + 1) % 3, 2);
          throw InvalidArgument("no such shape");
        }
        // It may fail when it begins or when it is waited for.
        EXPECT_THAT([&] { ranks.broadcast(room_in(room), failing)->wait(); },
                    ThrowsMessage<CommunicationError>(StrEq(text)));
        std::vector<int> all(3);
        EXPECT_THAT([&] { ranks.gather(bytes_of({1}), room_in(all)); },
                    ThrowsMessage<CommunicationError>(StrEq(text)));
        EXPECT_THAT([&] { ranks.send(bytes_of(room), failing, 1)->wait(); },
                    ThrowsMessage<CommunicationError>(StrEq(text)));
        ++num_told;
        throw std::runtime_error("not the first");
      });
    };
    EXPECT_THAT(run, ThrowsMessage<InvalidArgument>(StrEq("no such shape")));
    EXPECT_EQ(num_told, 2);
  }
}

TEST(ThreadRanks, MessagesThatNobodyWaitsForArriveWhereNobodyFails) {
  run_thread_ranks(2, [](Communicator& ranks) {
    if (ranks.rank() == 0) {
      std::vector<int> sent{1, 2, 3};
      static_cast<void>(ranks.send(bytes_of(sent), 1, 0));
      sent = {};
    } else {
      std::vector<int> got(3);
      ranks.receive(room_in(got), 0, 0)->wait();
      EXPECT_THAT(got, ElementsAre(1, 2, 3));
    }
  });
}

TEST(ThreadRanks, AMessageThatAnExceptionLeavesIsWithdrawn) {
  const auto caught = caught_by_ranks(2, [](Communicator& ranks) {
    std::vector<int> room(3);
    if (ranks.rank() == 0) {
      try {
        const auto lost = ranks.send(bytes_of(room), 1, 4);
        throw std::runtime_error("leaves");
      } catch (const std::runtime_error&) {
      }
      ranks.send(bytes_of(room), 1, 5)->wait();
    } else {
      ranks.receive(room_in(room), 0, 5)->wait();
      ranks.receive(room_in(room), 0, 4)->wait();
    }
  });
  EXPECT_THAT(caught, ElementsAre("",
                                  "Communicator: rank 1 waits to receive 12 bytes from rank 0 "
                                  "with tag 4, which gave it up, but rank 0 has ended"));
}

TEST(ThreadRanks, LoopsShareTheCallersThreads) {
  const ThreadLimit limit(4);
  const int threads = num_threads();
  for (const int size : {1, 2, 8}) {
    run_thread_ranks(size,
                     [&](Communicator&) { EXPECT_EQ(num_threads(), std::max(threads / size, 1)); });
  }
}

TEST(ThreadRanks, EachDrawsFromACopyOfTheCallersGenerator) {
  set_seed(5);
  const Tensor<std::int64_t> expected = TorchGenerator(5).randint(0, 1000, {3});
  run_thread_ranks(3, [&](Communicator&) {
    EXPECT_EQ(default_generator().randint(0, 1000, {3})(2), expected(2));
    set_seed(7);
  });
  EXPECT_EQ(default_generator().randint(0, 1000, {3})(2), expected(2));
}

TEST(ThreadRanks, ACancellationEndsWaiting) {
  Cancellation cancellation;
  const CancellationScope scope(&cancellation);
  const auto run = [&] {
    run_thread_ranks(2, [&](Communicator& ranks) {
      std::vector<int> room(3);
      if (ranks.rank() == 0) ranks.receive(room_in(room), 1, 0)->wait();
      cancellation.request();
      while (true) check_cancelled();
    });
  };
  EXPECT_THROW(run(), Cancelled);
}

TEST(RunOnAll, WhereNobodyFailsNobodyThrows) {
  for (const int size : {1, 3}) {
    std::atomic<int> sum = 0;
    run_thread_ranks(
        size, [&](Communicator& ranks) { run_on_all(ranks, [&] { sum += ranks.rank() + 1; }); });
    EXPECT_EQ(sum, size * (size + 1) / 2);
  }
}

TEST(RunOnAll, AloneTheExceptionIsTheOwn) {
  run_thread_ranks(1, [](Communicator& ranks) {
    EXPECT_THAT([&] { run_on_all(ranks, [] { throw IoError("no file"); }); },
                ThrowsMessage<IoError>(StrEq("no file")));
  });
}

}  // namespace
}  // namespace heed
