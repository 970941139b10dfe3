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
if(HEED_UNITY_BUILD)
  # Files that are compiled together share the names of their anonymous namespaces; make lint looks at each file alone.
  target_compile_options(heed_flags INTERFACE -Wno-shadow)
endif()
# What turns some mistakes into an end of the program before they are of use to an attacker: canaries on the stack, checked
# copies, and tables of functions that cannot be written to once the program runs.
target_compile_options(heed_flags INTERFACE -fstack-protector-strong)
if(NOT HEED_SANITIZE)
  # Needs an optimiser, and has other ideas than a sanitizer. Some compilers define it by themselves.
  target_compile_options(heed_flags INTERFACE
    "$<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>")
endif()
if(CMAKE_SYSTEM_NAME STREQUAL Linux)
  target_link_options(heed_flags INTERFACE LINKER:-z,relro LINKER:-z,now)
endif()

# heed_export_only(TARGET SCRIPT): a shared TARGET exports what the linker's version script says, and not the instances of
# templates of other libraries, whose visibility is theirs.
function(heed_export_only target script)
  get_target_property(type ${target} TYPE)
  if(CMAKE_SYSTEM_NAME STREQUAL Linux AND NOT type STREQUAL STATIC_LIBRARY)
    target_link_options(${target} PRIVATE LINKER:--version-script=${script})
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${script})
  endif()
endfunction()

# heed_refuse_undefined(TARGET): a shared TARGET that uses what nothing defines does not link, rather than fail to load. A
# sanitized one finds the sanitizer in the program.
function(heed_refuse_undefined target)
  get_target_property(type ${target} TYPE)
  if(CMAKE_SYSTEM_NAME STREQUAL Linux AND NOT type STREQUAL STATIC_LIBRARY AND NOT HEED_SANITIZE)
    target_link_options(${target} PRIVATE LINKER:-z,defs)
  endif()
endfunction()

# heed_refuse_undefined_in_extension(TARGET): the same of an extension of Python, whose own functions the interpreter defines.
function(heed_refuse_undefined_in_extension target)
  if(CMAKE_SYSTEM_NAME STREQUAL Linux AND NOT HEED_SANITIZE)
    add_custom_command(TARGET ${target} POST_BUILD VERBATIM
      COMMAND ${PROJECT_SOURCE_DIR}/cmake/refuse-undefined $<TARGET_FILE:${target}>)
  endif()
endfunction()

if(HEED_WARNINGS_AS_ERRORS)
  target_compile_options(heed_flags INTERFACE -Werror)
endif()
if(HEED_SANITIZE)
  target_compile_options(heed_flags INTERFACE
    -fsanitize=${HEED_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  target_link_options(heed_flags INTERFACE -fsanitize=${HEED_SANITIZE})
endif()
if(HEED_BUILD_FUZZERS)
  target_compile_options(heed_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
