# SPDX-License-Identifier: MIT
# build_viewer: makes the viewer's bundle from web/, in WORK; needs node and npm, as nothing else does.
#
#   cmake -DWEB=web -DWORK=folder -DDO=tools|update|check -P build_viewer.cmake
#
# `tools` also installs those of tests/grafana.
#
#   tools    copies the sources into WORK and installs the tools of the lock file there, again only when
#            it has changed; the packages' own scripts do not run
#   update   does so, builds the bundle in WORK/dist and copies it to WEB/dist, which is committed
#   check    builds what `tools` has prepared, and fails if that is not byte for byte WEB/dist
include("${CMAKE_CURRENT_LIST_DIR}/viewer_sources.cmake")
find_program(NPM npm)
if(NOT NPM)
    message(FATAL_ERROR "npm is missing, which only changes to the viewer need: docs/dependencies.md")
endif()

function(run)
    execute_process(COMMAND ${ARGN} WORKING_DIRECTORY "${WORK}" RESULT_VARIABLE failed
        OUTPUT_VARIABLE said ERROR_VARIABLE said)
    if(failed)
        list(JOIN ARGN " " command)
        message(FATAL_ERROR "${command} failed:\n${said}")
    endif()
endfunction()

# Tests run in this copy as well, so that nothing is installed into the source tree.
function(prepare)
    file(GLOB entries RELATIVE "${WEB}" "${WEB}/*")
    list(REMOVE_ITEM entries node_modules dist)
    foreach(entry IN LISTS entries ITEMS .npmrc)
        file(REMOVE_RECURSE "${WORK}/${entry}")
        file(COPY "${WEB}/${entry}" DESTINATION "${WORK}")
    endforeach()
    file(SHA256 "${WEB}/package-lock.json" lock)
    set(stamp "${WORK}/node_modules/.installed")
    set(installed "")
    if(EXISTS "${stamp}")
        file(READ "${stamp}" installed)
    endif()
    if(NOT installed STREQUAL lock)
        message(STATUS "Installing the tools of ${WEB}")
        run("${NPM}" ci --ignore-scripts --no-audit --no-fund --fetch-retries=1)
        file(WRITE "${stamp}" "${lock}")
    endif()
endfunction()

if(NOT DO STREQUAL "check")
    prepare()
endif()
if(DO STREQUAL "tools")
    return()
endif()
message(STATUS "Building the viewer")
file(REMOVE_RECURSE "${WORK}/dist")
run("${NPM}" run build)
viewer_sources_hash("${WEB}" hash)
file(WRITE "${WORK}/dist/SOURCES" "${hash}\n")
if(DO STREQUAL "update")
    file(REMOVE_RECURSE "${WEB}/dist")
    file(COPY "${WORK}/dist" DESTINATION "${WEB}")
    return()
endif()
execute_process(COMMAND diff -rq "${WORK}/dist" "${WEB}/dist" RESULT_VARIABLE differs OUTPUT_VARIABLE said)
if(differs)
    message(FATAL_ERROR "web/dist is not what web/ gives. Run 'make viewer', and commit web/dist "
        "together with the change.\n${said}")
endif()
