# Makes one C++ source of the explorer's page: joins the files of src/viz/explorer and computes the SHA-256 hashes of the
# scripts and styles that the page's Content-Security-Policy allows. The order is that of use: a script may call those before it
# while it starts.
set(heed_explorer_dir ${CMAKE_CURRENT_SOURCE_DIR}/src/viz/explorer)
set(heed_explorer_scripts dom layers data attention color state painter figure heatmap arcs heads steps positions table
  controls export server pictures map main)

set(heed_explorer_files page.html style.css)
foreach(script IN LISTS heed_explorer_scripts)
  list(APPEND heed_explorer_files ${script}.js)
endforeach()
foreach(file IN LISTS heed_explorer_files)
  file(READ ${heed_explorer_dir}/${file} text)
  # Refuses text that would end the element or the C++ literal too early, or that an HTML parser changes before hashing it.
  foreach(forbidden "</scr" "</sty" "<!--" ")explorer\"" "\r")
    string(FIND "${text}" "${forbidden}" position)
    if(NOT position EQUAL -1 AND NOT file STREQUAL page.html)
      message(FATAL_ERROR "${heed_explorer_dir}/${file} contains '${forbidden}', which cannot be embedded in the page")
    endif()
  endforeach()
  if(file STREQUAL page.html)
    set(heed_explorer_page "${text}")
  elseif(file STREQUAL style.css)
    # A page without a script follows the screen's theme with the same colours.
    string(REGEX MATCH ":root\\[data-theme=\"dark\"\\] {[^}]*}" heed_explorer_dark "${text}")
    if(heed_explorer_dark STREQUAL "")
      message(FATAL_ERROR "${heed_explorer_dir}/style.css has no rule for :root[data-theme=\"dark\"]")
    endif()
    string(REPLACE "\"dark\"" "\"auto\"" heed_explorer_dark "${heed_explorer_dark}")
    set(heed_explorer_style "\n${text}@media (prefers-color-scheme: dark) {\n${heed_explorer_dark}\n}\n")
  else()
    string(APPEND heed_explorer_modules "${text}\n")
    # One literal per script: compilers guarantee at most 65,536 characters in one.
    string(APPEND heed_explorer_literals "    R\"explorer(${text}\n)explorer\",\n")
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${heed_explorer_dir}/${file})
endforeach()
set(heed_explorer_opening "\n(() => {\n'use strict';\n")
set(heed_explorer_closing "})();\n")
string(SHA256 heed_explorer_style_hash "${heed_explorer_style}")
string(SHA256 heed_explorer_script_hash "${heed_explorer_opening}${heed_explorer_modules}${heed_explorer_closing}")
configure_file(${heed_explorer_dir}/sources.cc.in explorer_sources.cc @ONLY)
target_sources(heed_figures_objects PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/explorer_sources.cc)
