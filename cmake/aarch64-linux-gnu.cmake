# SPDX-License-Identifier: MIT
# Toolchain: builds for AArch64 with Debian's cross compiler.
#   cmake -S . -B build-aarch64 --toolchain cmake/aarch64-linux-gnu.cmake -DCAIRN_PRELOAD_ONLY=ON
# builds against the cross compiler's own libc; tests run under qemu-user. With -DCMAKE_SYSROOT=FOLDER
# all of cairn is built against the libraries of an AArch64 Debian in that folder
# (tools/aarch64/unpack_debian.sh).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_C_COMPILER_TARGET aarch64-linux-gnu)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
if(CMAKE_SYSROOT)
    # The compiler looks into the folders of its own libc before those of the other one, unless they are
    # named.
    set(multiarch "${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu")
    foreach(kind IN ITEMS EXE SHARED)
        set(CMAKE_${kind}_LINKER_FLAGS_INIT
            "-B${multiarch} -L${multiarch} -L${CMAKE_SYSROOT}/lib/aarch64-linux-gnu")
    endforeach()
    set(CMAKE_FIND_ROOT_PATH ${CMAKE_SYSROOT})
else()
    set(CAIRN_SYSROOT /usr/aarch64-linux-gnu)
    set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static;-L;${CAIRN_SYSROOT})
    set(CMAKE_FIND_ROOT_PATH ${CAIRN_SYSROOT})
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
