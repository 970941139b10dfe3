// A user's program with heed::mpi: each rank gets the data of all.
#include <cstdio>

#include "heed/mpi.h"

int main() {
  heed::MpiSession mpi;
  mpi.run([](heed::Communicator& ranks) {
    for (const std::string& text : heed::gather_texts(ranks, std::to_string(ranks.rank()))) {
      if (ranks.rank() == 0) std::printf("rank %s of %d\n", text.c_str(), ranks.size());
    }
  });
}
