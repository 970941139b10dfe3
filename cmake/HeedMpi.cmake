# MPI, of which heed uses the interface of C. heedConfig.cmake includes this file too.
set(MPI_CXX_SKIP_MPICXX ON)
if(HEED_BUILD_MPI STREQUAL AUTO)
  find_package(MPI QUIET COMPONENTS CXX)
else()
  find_package(MPI REQUIRED COMPONENTS CXX)
endif()
