# Builds and runs the project in this folder in each of the ways in which a program can use heed.
set(consumer_source ${CMAKE_CURRENT_LIST_DIR})
set(static_prefix ${PROJECT_BINARY_DIR}/prefix-static)
set(shared_prefix ${PROJECT_BINARY_DIR}/prefix-shared)

function(add_consumer_test name)
  add_test(NAME consumer.${name}
    COMMAND ${CMAKE_CTEST_COMMAND}
      --build-and-test ${consumer_source} ${PROJECT_BINARY_DIR}/consumer-${name}
      --build-generator ${CMAKE_GENERATOR} --build-noclean
      --build-options -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER} -DCMAKE_BUILD_TYPE=${CMAKE_BUILD_TYPE} ${ARGN}
      --test-command consumer)
endfunction()

# The library of this build, installed; static unless it was configured otherwise.
add_test(NAME consumer.install_static
  COMMAND ${CMAKE_COMMAND} --install ${PROJECT_BINARY_DIR} --prefix ${static_prefix})
add_consumer_test(static -DCMAKE_PREFIX_PATH=${static_prefix})

# heed inside the consumer's own build, shared and without layers; installed from there, it serves the next test.
add_consumer_test(subdirectory -DHEED_SOURCE_DIR=${PROJECT_SOURCE_DIR} -DBUILD_SHARED_LIBS=ON -DHEED_BUILD_NN=OFF -DHEED_BUILD_FIGURES=OFF
  -DHEED_UNITY_BUILD=ON -DHEED_INSTALL=ON -DHEED_BUILD_MPI=$<TARGET_EXISTS:heed_mpi>)
add_test(NAME consumer.install_shared
  COMMAND ${CMAKE_COMMAND} --install ${PROJECT_BINARY_DIR}/consumer-subdirectory --prefix ${shared_prefix})
add_consumer_test(shared -DCMAKE_PREFIX_PATH=${shared_prefix})

# What it exports, which is not what its templates make of other libraries.
find_program(HEED_PYTHON_PROGRAM python3)
add_test(NAME consumer.exported_symbols
  COMMAND ${HEED_PYTHON_PROGRAM} ${PROJECT_SOURCE_DIR}/tests/support/exported_symbols.py
    ${shared_prefix}/${CMAKE_INSTALL_LIBDIR}/libheed.so
    $<$<TARGET_EXISTS:heed_mpi>:${shared_prefix}/${CMAKE_INSTALL_LIBDIR}/libheed_mpi.so>)
set_tests_properties(consumer.exported_symbols PROPERTIES FIXTURES_REQUIRED prefix_shared)

# All that is installed, by `make install` too, and its end.
add_test(NAME consumer.install
  COMMAND ${consumer_source}/check-install ${CMAKE_COMMAND} ${PROJECT_BINARY_DIR}
    ${CMAKE_INSTALL_LIBDIR}/cmake/heed/heedConfig.cmake ${CMAKE_INSTALL_LIBDIR}/pkgconfig/heed.pc
    ${CMAKE_INSTALL_INCLUDEDIR}/heed/heed.h ${CMAKE_INSTALL_DATADIR}/doc/heed/LICENSE
    $<$<TARGET_EXISTS:heed_command>:${CMAKE_INSTALL_BINDIR}/heed>)
# Each installation writes the list of its files.
set_tests_properties(consumer.install consumer.install_static PROPERTIES RESOURCE_LOCK install_manifest)

# No CMake at all.
foreach(kind IN ITEMS static shared)
  add_test(NAME consumer.pkg_config_${kind}
    COMMAND ${consumer_source}/run-with-pkg-config ${CMAKE_CXX_COMPILER} ${${kind}_prefix}/${CMAKE_INSTALL_LIBDIR}
      ${PROJECT_BINARY_DIR}/consumer-pkg-config-${kind})
  # Containers of another layout.
  add_test(NAME consumer.containers_${kind}
    COMMAND ${consumer_source}/check-containers ${CMAKE_CXX_COMPILER} ${${kind}_prefix}/${CMAKE_INSTALL_LIBDIR}
      ${PROJECT_BINARY_DIR}/consumer-containers-${kind})
endforeach()

if(TARGET heed_mpi)
  foreach(kind IN ITEMS static shared)
    add_test(NAME consumer.pkg_config_mpi_${kind}
      COMMAND ${consumer_source}/run-with-pkg-config ${CMAKE_CXX_COMPILER} ${${kind}_prefix}/${CMAKE_INSTALL_LIBDIR}
        ${PROJECT_BINARY_DIR}/consumer-pkg-config-mpi-${kind} heed-mpi mpi_main.cc)
    set_tests_properties(consumer.pkg_config_mpi_${kind} PROPERTIES FIXTURES_REQUIRED prefix_${kind})
  endforeach()
endif()

# Every header's functions are there, or not declared.
add_test(NAME consumer.declared
  COMMAND ${consumer_source}/check-declared ${CMAKE_CXX_COMPILER} $<TARGET_FILE:heed> ${shared_prefix}/${CMAKE_INSTALL_LIBDIR})
set_tests_properties(consumer.declared PROPERTIES FIXTURES_REQUIRED prefix_shared)

set_tests_properties(consumer.install_static PROPERTIES FIXTURES_SETUP prefix_static)
set_tests_properties(consumer.subdirectory PROPERTIES FIXTURES_SETUP build_shared)
set_tests_properties(consumer.install_shared PROPERTIES
  FIXTURES_REQUIRED build_shared FIXTURES_SETUP prefix_shared)
foreach(kind IN ITEMS static shared)
  set_tests_properties(consumer.${kind} consumer.pkg_config_${kind} consumer.containers_${kind}
    PROPERTIES FIXTURES_REQUIRED prefix_${kind})
endforeach()
