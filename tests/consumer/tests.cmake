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

# Installs the library of this build; static unless it was configured otherwise.
add_test(NAME consumer.install_static
  COMMAND ${CMAKE_COMMAND} --install ${PROJECT_BINARY_DIR} --prefix ${static_prefix})
add_consumer_test(static -DCMAKE_PREFIX_PATH=${static_prefix})

# These builds are in sibling folders of the main build and have its settings, so that its compiler cache serves them.
set(sibling ${PROJECT_BINARY_DIR}/../)
cmake_path(NORMAL_PATH sibling)
get_filename_component(preset ${PROJECT_BINARY_DIR} NAME)
string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
string(REPLACE ";" "," sets "${HEED_INSTRUCTION_SETS}")
set(as_here -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER} -DCMAKE_BUILD_TYPE=${CMAKE_BUILD_TYPE}
  "-DCMAKE_CXX_FLAGS_${type}=${CMAKE_CXX_FLAGS_${type}}" -DHEED_UNITY_BUILD=${HEED_UNITY_BUILD} -DHEED_UNITY_FILES=${HEED_UNITY_FILES}
  -DHEED_COMPILER_CACHE=${HEED_COMPILER_CACHE} -DHEED_INSTRUCTION_SETS=${sets}
  -DHEED_BUILD_CLI=OFF -DHEED_BUILD_TESTS=OFF -DHEED_BUILD_EXAMPLES=OFF -DHEED_BUILD_PYTHON=OFF -DHEED_INSTALL=ON)
function(add_build_test name)
  add_test(NAME consumer.build_${name}
    COMMAND ${CMAKE_CTEST_COMMAND} --build-and-test ${PROJECT_SOURCE_DIR} ${sibling}${preset}-${name}
      --build-generator ${CMAKE_GENERATOR} --build-noclean --build-options ${as_here} ${ARGN})
  set_tests_properties(consumer.build_${name} PROPERTIES FIXTURES_SETUP build_${name} COST 500)
endfunction()

# A shared library without layers.
add_build_test(shared -DBUILD_SHARED_LIBS=ON -DHEED_BUILD_NN=OFF -DHEED_BUILD_FIGURES=OFF -DHEED_BUILD_MPI=$<TARGET_EXISTS:heed_mpi>)
add_test(NAME consumer.install_shared
  COMMAND ${CMAKE_COMMAND} --install ${sibling}${preset}-shared --prefix ${shared_prefix})
add_consumer_test(shared -DCMAKE_PREFIX_PATH=${shared_prefix})

# A build of attention alone installs nothing else, and that suffices.
add_build_test(attention -DHEED_LIBRARIES=attention -DHEED_BUILD_MPI=OFF)
add_test(NAME consumer.attention_alone
  COMMAND ${consumer_source}/check-attention-alone ${CMAKE_COMMAND} ${CMAKE_CXX_COMPILER} ${sibling}${preset}-attention
    ${CMAKE_INSTALL_LIBDIR} ${CMAKE_INSTALL_INCLUDEDIR})
set_tests_properties(consumer.attention_alone PROPERTIES FIXTURES_REQUIRED build_attention)

# One program per library, by find_package(heed COMPONENTS …).
add_test(NAME consumer.libraries
  COMMAND ${CMAKE_CTEST_COMMAND}
    --build-and-test ${consumer_source}/libraries ${PROJECT_BINARY_DIR}/consumer-libraries
    --build-generator ${CMAKE_GENERATOR} --build-noclean
    --build-options -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER} -DCMAKE_BUILD_TYPE=${CMAKE_BUILD_TYPE} -DCMAKE_PREFIX_PATH=${static_prefix}
    --test-command ${CMAKE_CTEST_COMMAND} --output-on-failure)
set_tests_properties(consumer.libraries PROPERTIES FIXTURES_REQUIRED prefix_static)

# heed inside the consumer's build: compiles the program; `make test-everything` compiles everything and links.
add_test(NAME consumer.subdirectory
  COMMAND ${CMAKE_CTEST_COMMAND}
    --build-and-test ${consumer_source} ${PROJECT_BINARY_DIR}/consumer-subdirectory
    --build-generator ${CMAKE_GENERATOR} --build-noclean --build-target CMakeFiles/consumer.dir/main.cc.o
    --build-options -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER} -DCMAKE_BUILD_TYPE=${CMAKE_BUILD_TYPE} -DHEED_SOURCE_DIR=${PROJECT_SOURCE_DIR})
add_consumer_test(subdirectory_whole -DHEED_SOURCE_DIR=${PROJECT_SOURCE_DIR} -DHEED_UNITY_BUILD=ON)
set_tests_properties(consumer.subdirectory_whole PROPERTIES LABELS slow)

# The exported symbols, without template instances of other libraries.
find_program(HEED_PYTHON_PROGRAM python3)
add_test(NAME consumer.exported_symbols
  COMMAND ${HEED_PYTHON_PROGRAM} ${PROJECT_SOURCE_DIR}/tests/support/exported_symbols.py
    ${shared_prefix}/${CMAKE_INSTALL_LIBDIR}/libheed.so
    $<$<TARGET_EXISTS:heed_mpi>:${shared_prefix}/${CMAKE_INSTALL_LIBDIR}/libheed_mpi.so>)
set_tests_properties(consumer.exported_symbols PROPERTIES FIXTURES_REQUIRED prefix_shared)

# Installs all files, as `make install` does, and removes them.
add_test(NAME consumer.install
  COMMAND ${consumer_source}/check-install ${CMAKE_COMMAND} ${PROJECT_BINARY_DIR}
    ${CMAKE_INSTALL_LIBDIR}/cmake/heed/heedConfig.cmake ${CMAKE_INSTALL_LIBDIR}/pkgconfig/heed.pc
    ${CMAKE_INSTALL_LIBDIR}/pkgconfig/heed-attention.pc ${CMAKE_INSTALL_INCLUDEDIR}/heed/heed.h ${CMAKE_INSTALL_DATADIR}/doc/heed/LICENSE
    $<$<TARGET_EXISTS:heed_command>:${CMAKE_INSTALL_BINDIR}/heed>)
# Each installation writes the list of its files.
set_tests_properties(consumer.install consumer.install_static PROPERTIES RESOURCE_LOCK install_manifest)

# Without CMake.
foreach(kind IN ITEMS static shared)
  add_test(NAME consumer.pkg_config_${kind}
    COMMAND ${consumer_source}/run-with-pkg-config ${CMAKE_CXX_COMPILER} ${${kind}_prefix}/${CMAKE_INSTALL_LIBDIR}
      ${PROJECT_BINARY_DIR}/consumer-pkg-config-${kind})
  # With containers of another layout.
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

# Every function in a header is defined or not declared.
set(heed_files "")
foreach(library IN LISTS heed_libraries)
  list(APPEND heed_files $<TARGET_FILE:heed_${library}>)
endforeach()
add_test(NAME consumer.declared
  COMMAND ${consumer_source}/check-declared ${CMAKE_CXX_COMPILER} ${shared_prefix}/${CMAKE_INSTALL_LIBDIR} ${heed_files})
set_tests_properties(consumer.declared PROPERTIES FIXTURES_REQUIRED prefix_shared)

set_tests_properties(consumer.install_static PROPERTIES FIXTURES_SETUP prefix_static)
set_tests_properties(consumer.install_shared PROPERTIES
  FIXTURES_REQUIRED build_shared FIXTURES_SETUP prefix_shared)
foreach(kind IN ITEMS static shared)
  set_tests_properties(consumer.${kind} consumer.pkg_config_${kind} consumer.containers_${kind}
    PROPERTIES FIXTURES_REQUIRED prefix_${kind})
endforeach()
