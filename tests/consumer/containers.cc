// A user's program that may be configured to use other containers than the library.
#include <heed/core/shape.h>

#include <cstdio>

int main() { std::puts(to_string(heed::Shape{2, 3}).c_str()); }
