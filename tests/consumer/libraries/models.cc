#include <heed/models/model.h>

#include <exception>

int main() {
  try {
    heed::models::load("there-is-no-such-folder");
  } catch (const std::exception&) {
    return 0;
  }
  return 1;
}
