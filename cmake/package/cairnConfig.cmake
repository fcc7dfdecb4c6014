# SPDX-License-Identifier: MIT
# cairnConfig: what find_package(cairn) gives. The folder that contains bin, include and share may be moved.
#
#   target_link_libraries(app PRIVATE cairn::cairn)   the folder of cairn.h and cairn.hpp; there is nothing to link
#   CAIRN_EXECUTABLE                                  the program
#   cairn_add_test(...)                               a test that is recorded, and held to budgets
#
# cairn_add_test(NAME name COMMAND program [arguments ...]
#                [MAX_PEAK size] [MAX_LEAKED size] [MAX_ALLOCATIONS n] [MAX_ALLOCATED size]
#                [MAX_TEMPORARY_SHARE percent] [MAX_RSS size]
#                [FUNCTION regex budgets ...] ... [OPTIONS options of `cairn check` ...])
#
# Like add_test, with `cairn check` before the command: the test fails if the program fails or exceeds a budget.
# Sizes are 10MiB or 0. The budgets after FUNCTION concern stacks with a function that matches. Without any
# budget the program is only recorded, so that the budgets in its own tests (cairn.hpp) are judged.
get_filename_component(cairn_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(CAIRN_EXECUTABLE "${cairn_prefix}/bin/cairn")
if(NOT TARGET cairn::cairn)
    add_library(cairn::cairn INTERFACE IMPORTED)
    set_target_properties(cairn::cairn PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${cairn_prefix}/include")
endif()
unset(cairn_prefix)

function(cairn_add_test)
    set(budgets MAX_PEAK MAX_LEAKED MAX_ALLOCATIONS MAX_ALLOCATED MAX_TEMPORARY_SHARE MAX_RSS FUNCTION)
    set(name "")
    set(command "")
    set(options "")
    set(has_budget FALSE)
    set(reads "")
    foreach(word IN LISTS ARGN)
        if(word IN_LIST budgets OR word MATCHES "^(NAME|COMMAND|OPTIONS)$")
            set(reads "${word}")
        elseif(reads STREQUAL "NAME")
            set(name "${word}")
        elseif(reads MATCHES "^(COMMAND|OPTIONS)$")
            string(TOLOWER "${reads}" list)
            list(APPEND ${list} "${word}")
        elseif(reads IN_LIST budgets)
            string(TOLOWER "--${reads}" option)
            string(REPLACE "_" "-" option "${option}")
            list(APPEND options "${option}" "${word}")
            set(has_budget TRUE)
            set(reads "")
        else()
            message(FATAL_ERROR "cairn_add_test: unexpected argument '${word}'")
        endif()
    endforeach()
    if(name STREQUAL "" OR command STREQUAL "")
        message(FATAL_ERROR "cairn_add_test needs NAME and COMMAND")
    endif()
    list(POP_FRONT command program)
    if(TARGET "${program}")
        set(program "$<TARGET_FILE:${program}>")
    endif()
    if(has_budget)
        set(checks check --no-config ${options})
    else()
        set(checks record -q -o "${name}.cairn" ${options})
    endif()
    add_test(NAME "${name}" COMMAND "${CAIRN_EXECUTABLE}" ${checks} -- "${program}" ${command})
endfunction()
