# SPDX-License-Identifier: MIT
# What `make install` and `make deb` put where. The executable finds its library by its own place
# (../lib/cairn), so that any prefix works; hence lib and never lib/<triplet>.
install(FILES "${CMAKE_SOURCE_DIR}/LICENSE" "${CMAKE_SOURCE_DIR}/README.md"
    "${CMAKE_SOURCE_DIR}/CHANGELOG.md" "${CMAKE_SOURCE_DIR}/cmake/debian/copyright"
    DESTINATION share/doc/cairn)
install(FILES "${CMAKE_SOURCE_DIR}/cmake/debian/lintian-overrides" DESTINATION share/lintian/overrides RENAME cairn)
install(FILES "${CMAKE_SOURCE_DIR}/include/cairn.h" "${CMAKE_SOURCE_DIR}/include/cairn.hpp"
    "${CMAKE_SOURCE_DIR}/include/cairn_benchmark.hpp" DESTINATION include)

# What find_package(cairn) and pkg-config read. Both find the headers by their own place.
include(CMakePackageConfigHelpers)
write_basic_package_version_file("${CMAKE_BINARY_DIR}/package/cairnConfigVersion.cmake"
    COMPATIBILITY SameMajorVersion ARCH_INDEPENDENT)
configure_file("${CMAKE_SOURCE_DIR}/cmake/package/cairn.pc.in" "${CMAKE_BINARY_DIR}/package/cairn.pc" @ONLY)
install(FILES "${CMAKE_SOURCE_DIR}/cmake/package/cairnConfig.cmake"
    "${CMAKE_BINARY_DIR}/package/cairnConfigVersion.cmake" DESTINATION share/cmake/cairn)
install(FILES "${CMAKE_BINARY_DIR}/package/cairn.pc" DESTINATION share/pkgconfig)

install(DIRECTORY "${CMAKE_SOURCE_DIR}/rust" DESTINATION share/cairn
    PATTERN target EXCLUDE PATTERN LICENSE EXCLUDE PATTERN Cargo.lock EXCLUDE PATTERN rustfmt.toml EXCLUDE)

# cairn_install_packed(SOURCE FOLDER NAME): install a file in the form of gzip, with the same bytes each time.
set(packed_files "")
function(cairn_install_packed source folder name)
    set(packed "${CMAKE_BINARY_DIR}/packed/${name}")
    add_custom_command(OUTPUT "${packed}" DEPENDS "${source}" VERBATIM
        COMMAND "${CMAKE_COMMAND}" -E make_directory "${CMAKE_BINARY_DIR}/packed"
        COMMAND sh -c "gzip -9nc \"$1\" >\"$2\"" sh "${source}" "${packed}")
    install(FILES "${packed}" DESTINATION "${folder}")
    set(packed_files ${packed_files} "${packed}" PARENT_SCOPE)
endfunction()

# Pages of the manual, build/man/<name>: each with the parts that it shares with others.
file(GLOB man_pages CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/docs/man/*.[13]")
file(GLOB man_parts CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/docs/man/parts/*.mdoc")
foreach(page IN LISTS man_pages)
    string(REGEX MATCH "[0-9]$" section "${page}")
    get_filename_component(name "${page}" NAME)
    set(joined "${CMAKE_BINARY_DIR}/man/${name}")
    set(join_man "${CMAKE_SOURCE_DIR}/tools/join_man.awk")
    add_custom_command(OUTPUT "${joined}" DEPENDS "${page}" ${man_parts} "${join_man}" VERBATIM
        COMMAND "${CMAKE_COMMAND}" -E make_directory "${CMAKE_BINARY_DIR}/man"
        COMMAND sh -c "awk -v parts=\"$1\" -f \"$2\" \"$3\" >\"$4\"" sh
            "${CMAKE_SOURCE_DIR}/docs/man/parts" "${join_man}" "${page}" "${joined}")
    cairn_install_packed("${joined}" share/man/man${section} "${name}.gz")
endforeach()
configure_file("${CMAKE_SOURCE_DIR}/cmake/debian/changelog.in" "${CMAKE_BINARY_DIR}/debian/changelog" @ONLY)
cairn_install_packed("${CMAKE_BINARY_DIR}/debian/changelog" share/doc/cairn changelog.gz)
add_custom_target(packed ALL DEPENDS ${packed_files})

# What the guides name, and the guides.
install(FILES "${CMAKE_SOURCE_DIR}/contrib/systemd/cairn-attach@.service" DESTINATION lib/systemd/system)
install(FILES "${CMAKE_SOURCE_DIR}/contrib/systemd/record.conf" DESTINATION share/cairn/systemd)
foreach(folder IN ITEMS collectors grafana kubernetes prometheus)
    install(DIRECTORY "${CMAKE_SOURCE_DIR}/contrib/${folder}" DESTINATION share/cairn)
endforeach()
install(DIRECTORY "${CMAKE_SOURCE_DIR}/docs/user" DESTINATION share/doc/cairn FILES_MATCHING PATTERN "*.md")

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
    "cairn runs a program, records where it allocates memory, how much and for how
long, and reports it: peak, leaks, temporary allocations, by call site and
with whole stacks, for the whole process tree. It needs no rebuild of the
program and costs little.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libdebuginfod1, libcurl4t64 | libcurl4")
# Loaded by name, so dpkg-shlibdeps does not see it.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libmicrohttpd12t64 | libmicrohttpd12")
if(CMAKE_CROSSCOMPILING) # dpkg knows the libraries of this machine only; all others are linked statically
    set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
    string(PREPEND CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.36), ")
else()
    set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
    set(CPACK_POST_BUILD_SCRIPTS "${CMAKE_SOURCE_DIR}/cmake/debian/drop_scripts.cmake")
endif()
include(CPack)
