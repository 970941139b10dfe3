#include <heed/distributed/thread_ranks.h>

int main() {
  int ranks = 0;
  heed::run_thread_ranks(2, [&](heed::Communicator& ranks_here) {
    if (ranks_here.rank() == 0) ranks = ranks_here.size();
  });
  return ranks == 2 ? 0 : 1;
}
