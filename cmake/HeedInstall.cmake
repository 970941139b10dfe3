# What `cmake --install` lays down: the library, its headers and its licence, and the files by which CMake and pkg-config find
# it. The command lays itself down. cmake/HeedUninstall.cmake takes everything away again.
include(CMakePackageConfigHelpers)

set(heed_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/heed)
install(TARGETS heed EXPORT heed-targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/heed)
install(EXPORT heed-targets FILE heedTargets.cmake NAMESPACE heed:: DESTINATION ${heed_package_dir})

# A shared library has its dependencies inside; whoever links a static one needs them too.
get_target_property(heed_type heed TYPE)
list(JOIN BLAS_LIBRARIES " " heed_blas_libraries)
set(heed_pc_modules "zlib fmt libhwy libutf8proc")
if(HEED_BUILD_FIGURES)
  string(APPEND heed_pc_modules " pangocairo cairo-svg cairo-pdf cairo-png")
endif()
if(heed_type STREQUAL "SHARED_LIBRARY")
  set(heed_is_static OFF)
  set(heed_pc_dependencies "Libs.private: ${heed_blas_libraries}\nRequires.private: ${heed_pc_modules}")
else()
  set(heed_is_static ON)
  set(heed_pc_dependencies "Requires: ${heed_pc_modules}")
  set(heed_pc_libraries " ${heed_blas_libraries}")
  install(FILES ${PROJECT_SOURCE_DIR}/cmake/HeedDependencies.cmake DESTINATION ${heed_package_dir})
endif()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/heedConfig.cmake.in heedConfig.cmake
  INSTALL_DESTINATION ${heed_package_dir})
# Before 1.0 a minor version may change anything.
write_basic_package_version_file(heedConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/heedConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/heedConfigVersion.cmake
  DESTINATION ${heed_package_dir})

# What the library lacks, as its headers are told.
get_target_property(heed_definitions heed INTERFACE_COMPILE_DEFINITIONS)
foreach(definition IN LISTS heed_definitions)
  if(definition)  # and not heed_definitions-NOTFOUND
    string(APPEND heed_pc_definitions " -D${definition}")
  endif()
endforeach()
configure_file(${PROJECT_SOURCE_DIR}/cmake/heed.pc.in heed.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/heed.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
