# The contents of a wheel: the extension, in heed/libs the shared libraries that it links, and in heed/licenses their licences.
#
# The extension finds them by its RPATH, which, unlike RUNPATH, also applies to the libraries that they link.
set_target_properties(heed_python PROPERTIES INSTALL_RPATH "$ORIGIN/libs" BUILD_WITH_INSTALL_RPATH ON)
target_link_options(heed_python PRIVATE -Wl,--disable-new-dtags)
install(TARGETS heed_python LIBRARY DESTINATION heed COMPONENT python)

find_path(heed_json_include nlohmann/json.hpp REQUIRED)
get_filename_component(heed_nanobind_dir ${nanobind_DIR} DIRECTORY)
# The C and C++ runtime libraries exist on every system on which Python runs, by PEP 600.
set(heed_system_libraries "^ld-linux|^lib(c|m|rt|dl|pthread|gcc_s|stdc\\+\\+)\\.so")
install(CODE "
  include(\"${CMAKE_CURRENT_LIST_DIR}/HeedLicenses.cmake\")
  set(licenses \"\${CMAKE_INSTALL_PREFIX}/heed/licenses\")
  heed_install_nanobind_license(\"${heed_nanobind_dir}\" \"\${licenses}\")
  heed_install_debian_license(\"${heed_json_include}/nlohmann/json.hpp\" \"\${licenses}\")
  file(GET_RUNTIME_DEPENDENCIES MODULES \"$<TARGET_FILE:heed_python>\"
    RESOLVED_DEPENDENCIES_VAR libraries PRE_EXCLUDE_REGEXES [[${heed_system_libraries}]])
  foreach(library IN LISTS libraries)
    # A wheel contains no links: the file gets the name by which it is loaded.
    file(REAL_PATH \"\${library}\" file)
    get_filename_component(name \"\${library}\" NAME)
    file(INSTALL \"\${file}\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/heed/libs\" RENAME \"\${name}\")
    heed_install_debian_license(\"\${file}\" \"\${licenses}\")
  endforeach()" COMPONENT python)
