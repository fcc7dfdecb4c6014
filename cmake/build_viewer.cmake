# SPDX-License-Identifier: MIT
# build_viewer: builds web/ into WORK/dist, without touching the source tree.
#
#   cmake -DSOURCE=web -DWORK=folder -DNPM=npm -DMODE=AUTO|ON -P build_viewer.cmake
#
# The sources are copied into WORK, the tools installed there from the lock file (again only when it
# has changed), and the viewer built. If that fails, as without a network, MODE ON fails; AUTO says
# so and takes SOURCE/dist if there is one, else leaves no dist: a build without a viewer.
file(GLOB entries RELATIVE "${SOURCE}" "${SOURCE}/*")
list(REMOVE_ITEM entries node_modules dist)
foreach(entry IN LISTS entries)
    file(REMOVE_RECURSE "${WORK}/${entry}")
    file(COPY "${SOURCE}/${entry}" DESTINATION "${WORK}")
endforeach()
file(REMOVE_RECURSE "${WORK}/dist")

function(run what)
    execute_process(COMMAND ${ARGN} WORKING_DIRECTORY "${WORK}" RESULT_VARIABLE failed
        OUTPUT_VARIABLE said ERROR_VARIABLE said)
    if(failed)
        set(problem "${what} failed:\n${said}" PARENT_SCOPE)
    endif()
endfunction()

set(problem "")
file(SHA256 "${SOURCE}/package-lock.json" lock)
set(stamp "${WORK}/node_modules/.installed")
set(installed "")
if(EXISTS "${stamp}")
    file(READ "${stamp}" installed)
endif()
if(NOT installed STREQUAL lock)
    message(STATUS "Installing the viewer's tools")
    run("npm ci" "${NPM}" ci --no-audit --no-fund --fetch-retries=1)
    if(NOT problem)
        file(WRITE "${stamp}" "${lock}")
    endif()
endif()
if(NOT problem)
    message(STATUS "Building the viewer")
    run("npm run build" "${NPM}" run build)
endif()
if(problem AND MODE STREQUAL "ON")
    message(FATAL_ERROR "${problem}")
elseif(problem AND EXISTS "${SOURCE}/dist/index.html")
    message(WARNING "The viewer that was built before is taken: ${problem}")
    file(COPY "${SOURCE}/dist" DESTINATION "${WORK}")
elseif(problem)
    message(WARNING "There will be no viewer: ${problem}")
endif()
