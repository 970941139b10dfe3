# The flags of heed's own translation units: warnings, sanitizers, and floating point without contraction.
add_library(heed_flags INTERFACE)
target_compile_options(heed_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Woverloaded-virtual
  -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # False positives of GCC 12: overlapping copies in std::string's operator+ (its bug 105651), and with sanitizers uninitialised
  # memory in std::regex (its bug 105562).
  target_compile_options(heed_flags INTERFACE -Wno-restrict)
  if(HEED_SANITIZE)
    target_compile_options(heed_flags INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()
if(HEED_UNITY_BUILD)
  # Files that are compiled together share the names of their anonymous namespaces; make lint checks each file alone.
  target_compile_options(heed_flags INTERFACE -Wno-shadow)
endif()
# Hardening that ends the program before an attacker can use a mistake: stack canaries, checked copies, and function tables that
# are read-only at run time. With mingw-w64, users of static libraries would have to link another one for the first two.
if(NOT WIN32)
  target_compile_options(heed_flags INTERFACE -fstack-protector-strong)
endif()
if(NOT HEED_SANITIZE AND NOT WIN32)
  # Needs optimisation and conflicts with sanitizers. Some compilers define it by default.
  target_compile_options(heed_flags INTERFACE
    "$<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>")
endif()
if(CMAKE_SYSTEM_NAME STREQUAL Linux)
  target_link_options(heed_flags INTERFACE LINKER:-z,relro LINKER:-z,now)
endif()
if(CMAKE_SYSTEM_NAME STREQUAL Windows AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # GCC aligns stacks to 16 bytes there, but moves vectors of AVX between registers and the stack as if to 32 (its bug 54412).
  # The assembler (binutils 2.38) writes the instructions that take any address instead; they are as fast where it is aligned.
  # Debian's GCC writes them itself.
  target_compile_options(heed_flags INTERFACE -Wa,-muse-unaligned-vector-move -Wa,-mbig-obj)
  # Nothing has tested AVX-512 there.
  target_compile_definitions(heed_flags INTERFACE "HWY_BROKEN_TARGETS=(HWY_AVX3|HWY_AVX3_DL)")
endif()

# heed_export_only(TARGET SCRIPT): a shared TARGET exports only the symbols of the linker's version script. Without it, template
# instances of other libraries would be exported with their own visibility.
function(heed_export_only target script)
  get_target_property(type ${target} TYPE)
  if(CMAKE_SYSTEM_NAME STREQUAL Linux AND NOT type STREQUAL STATIC_LIBRARY)
    target_link_options(${target} PRIVATE LINKER:--version-script=${script})
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${script})
  endif()
endfunction()

# heed_refuse_undefined(TARGET): linking a shared TARGET with undefined symbols fails, instead of loading it. A sanitized
# library is exempt, because the program defines the sanitizer's symbols.
function(heed_refuse_undefined target)
  get_target_property(type ${target} TYPE)
  if(CMAKE_SYSTEM_NAME STREQUAL Linux AND NOT type STREQUAL STATIC_LIBRARY AND NOT HEED_SANITIZE)
    target_link_options(${target} PRIVATE LINKER:-z,defs)
  endif()
endfunction()

# heed_refuse_undefined_in_extension(TARGET): the check for a Python extension, whose Python symbols the interpreter defines.
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
if(HEED_SANITIZE MATCHES address AND HEED_SANITIZE MATCHES undefined)
  # AddressSanitizer finds these too; checked at every access they take a third of the time of compiling.
  target_compile_options(heed_flags INTERFACE -fno-sanitize=null,object-size)
endif()
if(HEED_BUILD_FUZZERS)
  target_compile_options(heed_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
