# The flags of heed's own translation units: warnings, sanitizers, and floating point as it is written.
add_library(heed_flags INTERFACE)
target_compile_options(heed_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Woverloaded-virtual
  -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # GCC 12 sees overlapping copies in std::string's operator+ (its bug 105651), and with sanitizers uninitialised memory in
  # std::regex (its bug 105562).
  target_compile_options(heed_flags INTERFACE -Wno-restrict)
  if(HEED_SANITIZE)
    target_compile_options(heed_flags INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()
if(HEED_WARNINGS_AS_ERRORS)
  target_compile_options(heed_flags INTERFACE -Werror)
endif()
if(HEED_SANITIZE)
  target_compile_options(heed_flags INTERFACE
    -fsanitize=${HEED_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g)
  target_link_options(heed_flags INTERFACE -fsanitize=${HEED_SANITIZE})
endif()

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
