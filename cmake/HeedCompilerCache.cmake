# Takes objects that were compiled before from ccache where it is installed: in a build of this project, not of one that
# includes it, and unless the user names a launcher. Paths are hashed relative to the sources, so that all clones share their
# objects.
option(HEED_COMPILER_CACHE "Compile through ccache, where it is installed" ${PROJECT_IS_TOP_LEVEL})
if(HEED_COMPILER_CACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(HEED_CCACHE NAMES ccache)
  if(HEED_CCACHE)
    # Precompiled headers are known by their contents, not by the time of their making; the language of messages, which CTest
    # sets, makes no other object.
    set(CMAKE_CXX_COMPILER_LAUNCHER
      env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime,locale ${HEED_CCACHE})
  endif()
endif()
