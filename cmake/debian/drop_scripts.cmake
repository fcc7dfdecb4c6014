# SPDX-License-Identifier: MIT
# Takes the scripts out of the package that call ldconfig: CPack writes them for each package with a shared object
# below /usr/lib, and cairn's is in no folder of ldconfig's. A package with a postrm stays in the state "rc" after
# `apt remove`, as if it had configuration files. CPack runs this (CPACK_POST_BUILD_SCRIPTS).
foreach(package IN LISTS CPACK_PACKAGE_FILES)
    set(tree "${package}.tree")
    file(REMOVE_RECURSE "${tree}")
    foreach(step IN ITEMS "-R;${package};${tree}" "--root-owner-group;-Zxz;-b;${tree};${package}")
        if(EXISTS "${tree}")
            file(REMOVE "${tree}/DEBIAN/postinst" "${tree}/DEBIAN/postrm")
        endif()
        execute_process(COMMAND dpkg-deb ${step} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
    endforeach()
    file(REMOVE_RECURSE "${tree}")
endforeach()
