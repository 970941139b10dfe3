# Finds MPI, whose C interface heed uses. heedConfig.cmake includes this file too.
set(MPI_CXX_SKIP_MPICXX ON)
if(HEED_BUILD_MPI STREQUAL AUTO)
  find_package(MPI QUIET COMPONENTS CXX)
else()
  find_package(MPI REQUIRED COMPONENTS CXX)
endif()
