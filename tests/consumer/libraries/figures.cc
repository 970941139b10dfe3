#include <heed/viz/figure.h>
#include <heed/viz/terminal.h>

int main() { return heed::sanitize_for_terminal("a\x1b").size() > 1 ? 0 : 1; }
