# SPDX-License-Identifier: MIT
# viewer_sources: what the viewer's bundle is made of, and one hash of all of it.
#
#   viewer_sources_hash(web OUT)   sets OUT to a SHA-256 of the names and contents of the inputs
#
# web/dist/SOURCES holds this hash as it was when the bundle was made (cmake/build_viewer.cmake), so that
# a bundle that is older than its sources is noticed without node (cmake/embed_assets.cmake).
function(viewer_sources_list web out)
    set(watched "")
    if(NOT CMAKE_SCRIPT_MODE_FILE)
        set(watched CONFIGURE_DEPENDS)
    endif()
    file(GLOB_RECURSE sources RELATIVE "${web}" ${watched} "${web}/src/*")
    list(FILTER sources EXCLUDE REGEX "\\.test\\.ts$")
    list(APPEND sources index.html package.json package-lock.json tsconfig.json vite.config.ts)
    list(SORT sources)
    set(${out} "${sources}" PARENT_SCOPE)
endfunction()

function(viewer_sources_hash web out)
    viewer_sources_list("${web}" sources)
    set(lines "")
    foreach(source IN LISTS sources)
        file(SHA256 "${web}/${source}" sha256)
        string(APPEND lines "${sha256}  ${source}\n")
    endforeach()
    string(SHA256 hash "${lines}")
    set(${out} "${hash}" PARENT_SCOPE)
endfunction()
