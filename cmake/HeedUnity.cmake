# Compiles files of one room together. A new file changes the units of its room only, and a build without some rooms compiles
# the same units as others, so that one compiler cache serves all builds.

# heed_group_by_room(MOST SOURCE...): sets the unity group of each source, at most MOST per group. The room of a source is the
# second folder of its path, as in src/attention. Pass all sources before removing any. The names of the groups end with
# heed_group_suffix.
function(heed_group_by_room most)
  foreach(source IN LISTS ARGN)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE path)
    string(REGEX REPLACE "^([a-z]+)/([a-z]+)/.*" "\\1_\\2" room ${path})
    list(APPEND rooms ${room})
    list(APPEND in_${room} ${source})
  endforeach()
  list(REMOVE_DUPLICATES rooms)
  foreach(room IN LISTS rooms)
    list(LENGTH in_${room} count)
    math(EXPR units "(${count} + ${most} - 1) / ${most}")
    math(EXPR each "(${count} + ${units} - 1) / ${units}")
    set(index 0)
    foreach(source IN LISTS in_${room})
      math(EXPR unit "${index} / ${each}")
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${room}${heed_group_suffix}_${unit})
      math(EXPR index "${index} + 1")
    endforeach()
  endforeach()
endfunction()

# heed_unity_program(TARGET SOURCE...): compiles the files of a program together. They are small: half as many again as of a
# library, in units of about equal size.
function(heed_unity_program target)
  list(LENGTH ARGN count)
  math(EXPR most "${HEED_UNITY_FILES} * 3 / 2")
  math(EXPR units "(${count} + ${most} - 1) / ${most}")
  math(EXPR each "(${count} + ${units} - 1) / ${units}")
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${HEED_UNITY_BUILD} UNITY_BUILD_BATCH_SIZE ${each})
endfunction()
