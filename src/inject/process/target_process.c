// SPDX-License-Identifier: MIT
#include "inject/process/target_process.h"

#include <errno.h>

#include "base/search.h"
#include "host/os/target_file.h"

enum err
target_process_read(const struct target_process *target, uint64_t addr, void *into, size_t len)
{
    for (size_t done = 0; done < len;) {
        const ssize_t got = target->calls->read_at(target->mem_fd, (char *)into + done, len - done,
                                                   (off_t)(addr + done));
        if (got <= 0 && !(got < 0 && errno == EINTR)) {
            return ERR_NOT_FOUND;
        }
        done += got > 0 ? (size_t)got : 0;
    }
    return ERR_OK;
}

enum err target_process_write(const struct target_process *target,
                              uint64_t addr,
                              const void *from,
                              size_t len)
{
    for (size_t done = 0; done < len;) {
        const ssize_t put = target->calls->write_at(target->mem_fd, (const char *)from + done,
                                                    len - done, (off_t)(addr + done));
        if (put <= 0 && !(put < 0 && errno == EINTR)) {
            return ERR_NOT_FOUND;
        }
        done += put > 0 ? (size_t)put : 0;
    }
    return ERR_OK;
}

const struct target_mapping *target_process_mapping_at(const struct target_process *target,
                                                       uint64_t addr)
{
    const struct target_mapping *mappings = target->mappings.items;
    const size_t count = target->mappings.len;
    const size_t first = FIRST_WHERE(at, count, mappings[at].end > addr);
    return first < count && mappings[first].start <= addr ? mappings + first : NULL;
}

// map_files gives the mapped file itself, whatever happened to its name; it needs privileges.
enum err target_process_open_module_file(const struct target_process *target,
                                         const struct target_module *module,
                                         int *out_fd,
                                         struct err_info *info)
{
    const char *name = target_process_path(target, module->path);
    const struct target_mapping *mapping = target_process_mapping_at(target, module->start);
    if (mapping != NULL && mapping->inode != 0 &&
        target_file_open_mapped(target->live_tid, mapping->start, mapping->end, out_fd, info) ==
            ERR_OK) {
        return ERR_OK;
    }
    return target_file_open(target->live_tid, name, out_fd, info);
}
