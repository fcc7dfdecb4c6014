# SPDX-License-Identifier: MIT
# embed_assets: makes the viewer's files part of the executable.
#
#   cmake -DWEB=web -DOUT=folder -P embed_assets.cmake
#
# Writes OUT/asset_table.S, which holds each file of WEB/dist gzipped, and the table of struct asset
# (src/server/pages/assets.h) that names them. Fails if the bundle was made from other sources than those in
# WEB: the program would not show what its sources say.
include("${CMAKE_CURRENT_LIST_DIR}/viewer_sources.cmake")
set(dist "${WEB}/dist")
set(made_from "")
if(EXISTS "${dist}/SOURCES")
    file(STRINGS "${dist}/SOURCES" made_from)
endif()
viewer_sources_hash("${WEB}" hash)
if(NOT made_from STREQUAL hash)
    message(FATAL_ERROR "web/dist was not made from the sources in web/, which have changed. "
        "Run 'make viewer', which needs node and npm, and commit web/dist together with the change.")
endif()

set(types
    html "text/html\; charset=utf-8" js "text/javascript\; charset=utf-8"
    css "text/css\; charset=utf-8" svg "image/svg+xml" png "image/png" ico "image/x-icon"
    woff2 "font/woff2" json "application/json" txt "text/plain\; charset=utf-8"
    webmanifest "application/manifest+json" wasm "application/wasm")

file(MAKE_DIRECTORY "${OUT}")
file(GLOB_RECURSE files RELATIVE "${dist}" "${dist}/*")
list(REMOVE_ITEM files SOURCES)
list(SORT files)

set(data "")
set(table "")
set(number 0)
foreach(file IN LISTS files)
    if(file MATCHES "[^A-Za-z0-9._/-]" OR file MATCHES "/.*/.*/")
        message(FATAL_ERROR "the viewer has a file whose name cannot be served: ${file}")
    endif()
    string(REGEX REPLACE ".*\\." "" suffix "${file}")
    list(FIND types "${suffix}" place)
    if(place EQUAL -1)
        message(FATAL_ERROR "the viewer has a file of no known kind: ${file}")
    endif()
    math(EXPR place "${place} + 1")
    list(GET types ${place} type)
    file(SHA256 "${dist}/${file}" sha256)
    string(SUBSTRING "${sha256}" 0 16 hash)
    set(packed "${OUT}/asset_${number}.gz")
    execute_process(COMMAND gzip -9nc "${dist}/${file}" OUTPUT_FILE "${packed}" RESULT_VARIABLE failed)
    if(failed)
        message(FATAL_ERROR "cannot compress ${file}")
    endif()
    string(APPEND data
        "path_${number}: .asciz \"/${file}\"\n"
        "type_${number}: .asciz \"${type}\"\n"
        "hash_${number}: .asciz \"${hash}\"\n"
        "sha256_${number}: .asciz \"${sha256}\"\n"
        "data_${number}: .incbin \"${packed}\"\n"
        "end_${number}:\n")
    string(APPEND table
        "    .quad path_${number}, type_${number}, hash_${number}, sha256_${number}\n"
        "    .quad data_${number}, end_${number}\n")
    math(EXPR number "${number} + 1")
endforeach()

file(WRITE "${OUT}/asset_table.S"
"// Made by cmake/embed_assets.cmake.
    .section .rodata
${data}
    .section .data.rel.ro, \"aw\"
    .balign 8
    .globl asset_table
    .type asset_table, %object
asset_table:
${table}    .quad 0, 0, 0, 0, 0, 0
    .size asset_table, . - asset_table
    .section .note.GNU-stack, \"\", %progbits
")
