# The files that `cmake --install` installs: the libraries, the headers of the built libraries, the licence, and the package
# files for CMake and pkg-config. Each library is a component (`cmake --install … --component io`), including those it uses;
# files for all libraries are in the component attention. The command installs itself. cmake/HeedUninstall.cmake removes
# everything.
include(CMakePackageConfigHelpers)

set(heed_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/heed)
function(heed_install_headers library)
  foreach(room IN LISTS heed_rooms_${library})
    if(EXISTS ${PROJECT_SOURCE_DIR}/include/heed/${room})
      install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/heed/${room} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/heed COMPONENT ${library})
    endif()
  endforeach()
endfunction()
if(BUILD_SHARED_LIBS)
  install(TARGETS heed EXPORT heed-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT attention)
else()
  install(TARGETS heed EXPORT heed-targets)
endif()
foreach(library IN LISTS heed_libraries)
  install(TARGETS heed_${library} EXPORT heed-targets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${library})
  heed_install_headers(${library})
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/include/heed/attention.h ${PROJECT_SOURCE_DIR}/include/heed/heed.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/heed COMPONENT attention)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/heed COMPONENT attention)
install(EXPORT heed-targets FILE heedTargets.cmake NAMESPACE heed:: DESTINATION ${heed_package_dir} COMPONENT attention)
if(NOT BUILD_SHARED_LIBS)
  # A shared library links its dependencies itself; users of a static library must link them.
  install(FILES ${PROJECT_SOURCE_DIR}/cmake/HeedDependencies.cmake DESTINATION ${heed_package_dir} COMPONENT attention)
endif()

set(heed_is_static ON)
if(BUILD_SHARED_LIBS)
  set(heed_is_static OFF)
endif()
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/heedConfig.cmake.in heedConfig.cmake
  INSTALL_DESTINATION ${heed_package_dir})
# Before 1.0 a minor version may change anything.
write_basic_package_version_file(heedConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/heedConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/heedConfigVersion.cmake
  DESTINATION ${heed_package_dir} COMPONENT attention)

# The definitions that tell the headers what was not built.
list(TRANSFORM heed_left_out PREPEND " -D" OUTPUT_VARIABLE heed_pc_definitions)
list(JOIN heed_pc_definitions "" heed_pc_definitions)

# heed_install_pc(NAME LIBS REQUIRES COMPONENT): installs NAME.pc, which links LIBS and requires the modules REQUIRES.
function(heed_install_pc name libs requires component)
  set(heed_pc_name ${name})
  set(heed_pc_libs "${libs}")
  set(heed_pc_requires "${requires}")
  configure_file(${PROJECT_SOURCE_DIR}/cmake/heed.pc.in ${name}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT ${component})
endfunction()
list(JOIN BLAS_LIBRARIES " " heed_blas_libraries)
list(TRANSFORM heed_libraries PREPEND "heed-" OUTPUT_VARIABLE heed_pc_all)
list(JOIN heed_pc_all " " heed_pc_all)
foreach(library IN LISTS heed_libraries)
  if(BUILD_SHARED_LIBS)
    heed_install_pc(heed-${library} "-lheed" "" ${library})
    continue()
  endif()
  set(libs "-lheed_${library}")
  if(library MATCHES "^(models|train)$" AND TARGET heed_blas)
    string(APPEND libs " ${heed_blas_libraries}")
  endif()
  list(TRANSFORM heed_uses_${library} PREPEND "heed-" OUTPUT_VARIABLE requires)
  list(JOIN requires " " requires)
  list(JOIN heed_modules_${library} " " modules)
  heed_install_pc(heed-${library} "${libs}" "${requires} ${modules}" ${library})
endforeach()
if(BUILD_SHARED_LIBS)
  heed_install_pc(heed "-lheed" "" attention)
else()
  heed_install_pc(heed "" "${heed_pc_all}" attention)
endif()
