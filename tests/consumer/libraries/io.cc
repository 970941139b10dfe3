#include <heed/io/npy.h>

#include <exception>

int main() {
  try {
    heed::read_npy("there-is-no-such.npy");
  } catch (const std::exception&) {
    return 0;
  }
  return 1;
}
