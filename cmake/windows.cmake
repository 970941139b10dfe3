# Builds for 64-bit Windows on Debian: with its cross compiler, with what scripts/build-windows-dependencies builds, and wine to
# run the programs. Programs are linked statically, so that they need no DLL of the compiler.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)

set(heed_windows_prefix ${CMAKE_CURRENT_LIST_DIR}/../build/windows-deps/prefix)
set(CMAKE_FIND_ROOT_PATH ${heed_windows_prefix} /usr/x86_64-w64-mingw32)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${heed_windows_prefix}/lib/pkgconfig)
# Of the two zlibs of Debian's package, the one that is not a DLL.
set(ZLIB_LIBRARY /usr/x86_64-w64-mingw32/lib/libz.a CACHE FILEPATH "zlib")

# Debian has wine64 outside of the path.
find_program(HEED_WINE NAMES wine64 wine PATHS /usr/lib/wine)
if(HEED_WINE)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${HEED_WINE})
endif()
