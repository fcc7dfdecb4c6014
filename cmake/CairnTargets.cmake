# SPDX-License-Identifier: MIT
# Functions that give every target of cairn the same warnings and shape.

option(CAIRN_WERROR "Treat warnings as errors" ON)
set(CAIRN_SANITIZE "" CACHE STRING "Sanitizers for our own processes: address,undefined or thread")

# The folder under each arch/ that holds this machine's variants of the same file names.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
    set(CAIRN_ARCH x86_64)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    set(CAIRN_ARCH aarch64)
else()
    message(FATAL_ERROR "cairn knows x86-64 and AArch64, not ${CMAKE_SYSTEM_PROCESSOR}")
endif()

set(CAIRN_WARNINGS
    -Wall -Wextra -Wshadow -Wundef -Wvla -Wwrite-strings -Wcast-qual -Wimplicit-fallthrough
    -Wformat=2 -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes)
if(CAIRN_WERROR)
    list(APPEND CAIRN_WARNINGS -Werror)
endif()

function(cairn_compile_options target)
    # Where the sources lie is no part of what is built: the same sources give the same bytes.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:C>:${CAIRN_WARNINGS}> -fno-common
        "-ffile-prefix-map=${CMAKE_SOURCE_DIR}=.")
    target_include_directories(${target} PUBLIC "${CMAKE_SOURCE_DIR}/src")
    target_compile_definitions(${target} PRIVATE _GNU_SOURCE)
endfunction()

function(cairn_sanitize target)
    if(CAIRN_SANITIZE)
        target_compile_options(${target} PRIVATE -fsanitize=${CAIRN_SANITIZE} -fno-omit-frame-pointer
            -fno-sanitize-recover=all)
        target_link_options(${target} PUBLIC -fsanitize=${CAIRN_SANITIZE})
    endif()
endfunction()

# What makes a mistake in our own processes, which read what strangers wrote, harder to use. Sanitizers
# have checks of their own; T code has no library to report to.
function(cairn_harden target)
    if(CAIRN_SANITIZE)
        return()
    endif()
    target_compile_options(${target} PRIVATE
        -fstack-protector-strong -fstack-clash-protection $<$<CONFIG:RelWithDebInfo,Release>:-D_FORTIFY_SOURCE=2>
        $<$<STREQUAL:${CAIRN_ARCH},x86_64>:-fcf-protection=full>)
    # Threads and processes with a small stack (ulimit -s) run this code. Without optimisation frames are larger.
    if(CMAKE_BUILD_TYPE MATCHES "^(RelWithDebInfo|Release)$")
        target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:C>:-Wframe-larger-than=17408>)
    endif()
    target_link_options(${target} PRIVATE -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
endfunction()

# cairn_folder_sources(variable FOLDER ...): sets `variable` to the C files of the product below these
# folders ("." is the current one), without tests, fuzzers and folders called test_*. A new file is in
# the next build without being listed.
function(cairn_folder_sources variable)
    set(found "")
    foreach(folder IN LISTS ARGN)
        file(GLOB_RECURSE files RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}" CONFIGURE_DEPENDS "${folder}/*.c")
        list(APPEND found ${files})
    endforeach()
    list(FILTER found EXCLUDE REGEX "(_test\\.c$|(^|/)fuzz_[^/]*\\.c$|(^|/)test_[^/]*/)")
    list(SORT found)
    set(${variable} "${found}" PARENT_SCOPE)
endfunction()

# cairn_archives(variable NAME ...): sets `variable` to the static libraries of these names, and to the shared one
# where there is no archive: eight libraries fewer to load take a quarter off each start of cairn.
function(cairn_archives variable)
    set(found "")
    foreach(name IN LISTS ARGN)
        find_library(CAIRN_LIBRARY_${name} NAMES lib${name}.a ${name} REQUIRED)
        list(APPEND found "${CAIRN_LIBRARY_${name}}")
    endforeach()
    set(${variable} "${found}" PARENT_SCOPE)
endfunction()

# cairn_host_library(name SOURCES a.c ... LIBS other ...): a folder of H code.
function(cairn_host_library name)
    cmake_parse_arguments(ARG "IS_TARGET_CODE" "" "SOURCES;LIBS" ${ARGN})
    add_library(${name} STATIC ${ARG_SOURCES})
    cairn_compile_options(${name})
    cairn_sanitize(${name})
    if(NOT ARG_IS_TARGET_CODE)
        cairn_harden(${name})
    endif()
    target_link_libraries(${name} PUBLIC ${ARG_LIBS})
endfunction()

# Code inside a target uses no vector registers. The compiler would save them on the stack as if that were
# aligned, and programs call malloc whose stack is not: glibc's bears it. Hooks would also pack their
# caller's registers into them, which costs a trip through memory.
function(cairn_general_registers target)
    target_compile_options(${target} PRIVATE -mgeneral-regs-only)
endfunction()

# cairn_target_objects(name SOURCES a.c ... LIBS other ...): a folder of T code. It exists twice:
# <name>_pic goes into the preload library, never sanitized, since it runs inside strangers;
# <name> is the same code for our own processes and tests.
function(cairn_target_library name)
    cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
    cairn_host_library(${name} IS_TARGET_CODE SOURCES ${ARG_SOURCES} LIBS ${ARG_LIBS})
    add_library(${name}_pic STATIC ${ARG_SOURCES})
    cairn_compile_options(${name}_pic)
    set_target_properties(${name}_pic PROPERTIES
        POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
    target_compile_options(${name}_pic PRIVATE
        -O2 -ftls-model=initial-exec -fno-stack-protector -fno-plt -fno-builtin-malloc)
    cairn_general_registers(${name}_pic)
    foreach(lib IN LISTS ARG_LIBS)
        target_link_libraries(${name}_pic PUBLIC ${lib}_pic)
    endforeach()
endfunction()

# Unit tests are written with cmocka; for other machines there is a part of it in tests/aarch64.
if(CAIRN_PRELOAD_ONLY)
    add_library(cmocka INTERFACE)
    target_include_directories(cmocka INTERFACE "${CMAKE_SOURCE_DIR}/tests/aarch64")
endif()

# How long a test may take before it counts as hanging, in seconds of the clock. Sanitized code is many
# times slower on a busy machine, and the longest test takes over ten minutes there.
if(CAIRN_SANITIZE)
    set(CAIRN_TEST_TIMEOUT 2400)
else()
    set(CAIRN_TEST_TIMEOUT 600)
endif()

# glibc fills memory that it gives out and gets back with a byte, so that what is read beyond the end of an
# array, before it was set, or after it was freed, is not zero or right by chance.
set(CAIRN_FILLED_MEMORY MALLOC_PERTURB_=165)

# cairn_leave_out(target test): a program of a test that is not asked for is not built.
set(CAIRN_TESTS "." CACHE STRING "Regular expression for the names of the tests that are built")
function(cairn_leave_out target test)
    if(NOT test MATCHES "${CAIRN_TESTS}")
        set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL TRUE)
    endif()
endfunction()

# cairn_entry(name command ...): a ctest entry, whose processor time `make test` notes (tests/test_entry.c). The
# command may be a target.
function(cairn_entry name command)
    if(CMAKE_CROSSCOMPILING) # ctest starts a target with the emulator
        add_test(NAME ${name} COMMAND "${command}" ${ARGN})
        return()
    endif()
    if(TARGET "${command}")
        set(command "$<TARGET_FILE:${command}>")
    endif()
    add_test(NAME ${name} COMMAND test_entry ${name} "${command}" ${ARGN})
endfunction()

# cairn_test(unit.folder.noun SOURCES x_test.c ... LIBS cairn_folder ...): a cmocka program in ctest.
function(cairn_test name)
    if(NOT BUILD_TESTING)
        return()
    endif()
    cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
    add_executable(${name} ${ARG_SOURCES})
    cairn_compile_options(${name})
    cairn_sanitize(${name})
    target_link_libraries(${name} PRIVATE ${ARG_LIBS} cmocka)
    set_target_properties(${name} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/unit")
    cairn_leave_out(${name} ${name})
    cairn_entry(${name} ${name})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${CAIRN_TEST_TIMEOUT} ENVIRONMENT "${CAIRN_FILLED_MEMORY}")
    if(CMAKE_CROSSCOMPILING)
        set_tests_properties(${name} PROPERTIES TIMEOUT 1000
            ENVIRONMENT "CAIRN_TEST_SHORT=1;${CAIRN_FILLED_MEMORY}")
    endif()
endfunction()

# cairn_tests(unit.folder LIBS other ... NOUNS x folder/y ...): the tests unit.folder.x from x_test.c,
# unit.folder.y from folder/y_test.c, and so on.
function(cairn_tests prefix)
    cmake_parse_arguments(ARG "" "" "LIBS;NOUNS" ${ARGN})
    foreach(noun IN LISTS ARG_NOUNS)
        get_filename_component(name "${noun}" NAME)
        cairn_test(${prefix}.${name} SOURCES ${noun}_test.c LIBS ${ARG_LIBS})
    endforeach()
endfunction()

# cairn_fuzzer(name SOURCES fuzz_x.c ... LIBS cairn_folder ... SEEDS folder ...): a fuzz target, whose seeds
# are below tests/fuzz/corpus. With
# CAIRN_FUZZ (make fuzz-smoke) a libFuzzer program; else a test that replays the seeds and their
# near neighbours (tests/fuzz/replay.c).
option(CAIRN_FUZZ "Build the fuzz targets with libFuzzer (clang)" OFF)
function(cairn_fuzzer name)
    cmake_parse_arguments(ARG "" "" "SOURCES;LIBS;SEEDS" ${ARGN})
    add_executable(fuzz_${name} ${ARG_SOURCES})
    cairn_compile_options(fuzz_${name})
    cairn_sanitize(fuzz_${name})
    target_link_libraries(fuzz_${name} PRIVATE ${ARG_LIBS})
    set_target_properties(fuzz_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/fuzz")
    list(TRANSFORM ARG_SEEDS PREPEND "${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/")
    if(CAIRN_FUZZ)
        target_compile_options(fuzz_${name} PRIVATE -fsanitize=fuzzer -Wno-missing-prototypes)
        target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
        list(JOIN ARG_SEEDS "\n" seeds)
        file(WRITE "${CMAKE_BINARY_DIR}/fuzz/${name}.seeds" "${seeds}\n")
        add_dependencies(fuzzers fuzz_${name})
    else()
        target_compile_options(fuzz_${name} PRIVATE -Wno-missing-prototypes)
        target_sources(fuzz_${name} PRIVATE "${CMAKE_SOURCE_DIR}/tests/fuzz/replay.c")
        cairn_leave_out(fuzz_${name} fuzz.${name})
        cairn_entry(fuzz.${name} fuzz_${name} ${ARG_SEEDS})
        set_tests_properties(fuzz.${name} PROPERTIES TIMEOUT ${CAIRN_TEST_TIMEOUT}
            ENVIRONMENT "${CAIRN_FILLED_MEMORY}")
        if(NOT CAIRN_SANITIZE) # `make check` runs it under the sanitizers, which see more
            set_tests_properties(fuzz.${name} PROPERTIES LABELS nightly)
        endif()
    endif()
endfunction()
if(CAIRN_FUZZ)
    add_custom_target(fuzzers)
endif()
