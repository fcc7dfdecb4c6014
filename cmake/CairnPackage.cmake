# SPDX-License-Identifier: MIT
# What `make install` and `make deb` put where. The executable finds its library by its own place
# (../lib/cairn), so that any prefix works; hence lib and never lib/<triplet>.
install(FILES "${CMAKE_SOURCE_DIR}/LICENSE" "${CMAKE_SOURCE_DIR}/README.md"
    "${CMAKE_SOURCE_DIR}/CHANGELOG.md" DESTINATION share/doc/cairn)
install(FILES "${CMAKE_SOURCE_DIR}/include/cairn.h" DESTINATION include)
install(FILES "${CMAKE_SOURCE_DIR}/docs/man/cairn.1" "${CMAKE_SOURCE_DIR}/docs/man/cairn-top.1"
    DESTINATION share/man/man1)
install(FILES "${CMAKE_SOURCE_DIR}/docs/man/cairn.h.3" DESTINATION share/man/man3)

install(FILES "${CMAKE_SOURCE_DIR}/completion/cairn.bash" DESTINATION share/bash-completion/completions RENAME cairn)
install(FILES "${CMAKE_SOURCE_DIR}/completion/cairn.fish" DESTINATION share/fish/vendor_completions.d)
# zsh of Debian looks in the first below /usr/local, in the second below /usr.
foreach(folder IN ITEMS site-functions vendor-completions)
    install(FILES "${CMAKE_SOURCE_DIR}/completion/_cairn" DESTINATION share/zsh/${folder})
endforeach()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME cairn)
set(CPACK_PACKAGE_VENDOR "the cairn authors")
set(CPACK_PACKAGE_CONTACT "the cairn authors <cairn@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_DESCRIPTION
    "cairn runs a program, records where it allocates memory, how much and for how long, and reports
it: peak, leaks, temporary allocations, by call site and with whole stacks, for the whole
process tree. It needs no rebuild of the program and costs little.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libdebuginfod1, libcurl4t64 | libcurl4")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Loaded by name, so dpkg-shlibdeps does not see it.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libmicrohttpd12t64 | libmicrohttpd12")
include(CPack)
