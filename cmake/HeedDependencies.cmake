# Every library heed links, each under one target. heedConfig.cmake includes this file too, so that a consumer of the
# static library finds the same targets.
find_package(TBB REQUIRED)
find_package(ZLIB REQUIRED)
find_package(fmt REQUIRED)
find_package(HWY REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(heed_utf8proc_pc REQUIRED IMPORTED_TARGET libutf8proc)

# OpenBLAS where there is one, any other BLAS with the C interface where not; -DBLA_VENDOR=… decides otherwise.
if(NOT DEFINED BLA_VENDOR)
  set(BLA_VENDOR OpenBLAS)
  find_package(BLAS QUIET)
  unset(BLA_VENDOR)
endif()
find_package(BLAS REQUIRED)
find_path(HEED_CBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas-pthread openblas cblas)

if(NOT TARGET heed_blas)
  add_library(heed_blas INTERFACE IMPORTED)
  target_link_libraries(heed_blas INTERFACE ${BLAS_LIBRARIES})
  if(HEED_CBLAS_INCLUDE_DIR)
    target_include_directories(heed_blas INTERFACE ${HEED_CBLAS_INCLUDE_DIR})
  endif()
endif()
if(NOT TARGET heed_utf8proc)
  add_library(heed_utf8proc INTERFACE IMPORTED)
  target_link_libraries(heed_utf8proc INTERFACE PkgConfig::heed_utf8proc_pc)
endif()
