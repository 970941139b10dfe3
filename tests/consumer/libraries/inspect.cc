#include <heed/inspect/patterns.h>

int main() { return heed::inspect::text_patterns().empty() ? 1 : 0; }
