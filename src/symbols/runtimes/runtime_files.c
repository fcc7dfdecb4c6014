// SPDX-License-Identifier: MIT
#include "symbols/runtimes/runtime_files.h"

#include "base/compiler.h"
#include "host/os/target_file.h"
#include "host/text/strbuf.h"
#include "symbols/elf/elf_file.h"

void runtime_files_release(struct runtime_files *files)
{
    map_u64_release(&files->rows);
}

static uint32_t number_of(const struct runtime *runtime)
{
    uint32_t number = 0;
    while (runtime != NULL && runtime_table_row(number++) != runtime) {
    }
    return number;
}

const struct runtime *runtime_files_read(const char *path, int pid)
{
    CLEANUP(elf_file_close) struct elf_file file = {.fd = -1};
    CLEANUP(strbuf_release) struct strbuf absolute = {0};
    if (path[0] != '/' && target_file_append_folder(pid, &absolute)) {
        strbuf_append_char(&absolute, '/');
    }
    strbuf_append_text(&absolute, path);
    path = strbuf_text(&absolute);
    if (path[0] != '/' || (elf_file_open_target(&file, pid, path, NULL) != ERR_OK &&
                           (pid == 0 || elf_file_open_target(&file, 0, path, NULL) != ERR_OK))) {
        return NULL;
    }
    return runtime_table_of_module(&file, path);
}

bool runtime_files_get(struct runtime_files *files, rec_string path, const struct runtime **out)
{
    uint32_t number = 0;
    const bool is_read = map_u64_get(&files->rows, path, &number);
    *out = number != 0 ? runtime_table_row(number - 1) : NULL;
    return is_read;
}

enum err
runtime_files_put(struct runtime_files *files, rec_string path, const struct runtime *runtime)
{
    return map_u64_put(&files->rows, path, number_of(runtime));
}
