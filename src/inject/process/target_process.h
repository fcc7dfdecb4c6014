// SPDX-License-Identifier: MIT
// target_process: a running process that cairn reads and changes from outside.
//
// It holds what /proc says about the process: its mappings, and its modules with their build-ids,
// read from the target's memory, so that deleted files, other roots and other namespaces make no
// difference. Memory is read and written through /proc/PID/task/TID/mem of a thread that is alive,
// because the files of a process are empty once its first thread has ended. Writing there ignores
// page protection; where the kernel forbids that, thread_stop.h writes with ptrace.
//
// Mappings and modules are a copy of one moment; target_reading.h reads them.
// Context: H, one thread at a time.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "host/text/strbuf.h"
#include "inject/process/kernel_calls.h"

enum {
    TARGET_BUILD_ID_MAX = 64,      // bytes; longer ones are truncated
    TARGET_MAPPINGS_MAX = 1 << 18, // four times what the kernel permits without a setting
    TARGET_MODULES_MAX = 4096,     // those at the lowest addresses
    TARGET_UNREAD_MAX = 256,
};

struct target_mapping {
    uint64_t start;
    uint64_t end;
    uint64_t file_off;
    uint64_t inode;  // 0: not a file
    uint32_t device; // its major and minor number, the kernel's MKDEV
    uint32_t path;   // offset in target_process.paths; "" for anonymous memory
    uint8_t prot;    // PROT_...
};
DEFINE_VEC(target_mapping_vec, struct target_mapping);

// A module as it is mapped. Addresses are the target's.
struct target_module {
    uint64_t start; // of its first page
    uint64_t end;   // behind its last page
    uint64_t text_start;
    uint64_t text_end;     // behind the last byte of its last executable segment
    uint64_t load_bias;    // add it to an address in the file
    uint64_t eh_frame_hdr; // 0: none
    uint64_t headers;      // address of its program headers
    uint32_t header_count;
    uint64_t dynamic; // its dynamic section; 0: none, a static executable
    uint32_t path;    // offset in target_process.paths; as the target names it
    uint32_t build_id_len;
    uint8_t build_id[TARGET_BUILD_ID_MAX];
    bool is_vdso;
    bool has_interpreter; // PT_INTERP: an executable that a dynamic loader starts
};
DEFINE_VEC(target_module_vec, struct target_module);

struct target_process {
    int pid;
    int live_tid;                       // a thread whose files in /proc are used
    int mem_fd;                         // owned
    int pidfd;                          // owned; -1 before Linux 5.3
    bool has_seccomp;                   // in its first thread; seen again at each stop
    const struct kernel_calls *calls;   // borrowed
    struct target_mapping_vec mappings; // sorted by address
    struct target_module_vec modules;   // sorted by address; the vdso may lie within another
    bool has_more_modules;              // than TARGET_MODULES_MAX
    // Paths of modules whose headers could not be read, as `path` above; the first ones.
    struct u32_vec unread;
    struct strbuf paths; // zero-terminated, one after another
};

// Read or write exactly `len` bytes. ERR_NOT_FOUND if some are not mapped or the process has ended;
// what was written before stays.
enum err
target_process_read(const struct target_process *target, uint64_t addr, void *into, size_t len)
    MUST_USE;
enum err target_process_write(const struct target_process *target,
                              uint64_t addr,
                              const void *from,
                              size_t len) MUST_USE;

// Return the path behind an offset above; never NULL.
static inline const char *target_process_path(const struct target_process *target, uint32_t path)
{
    return strbuf_text(&target->paths) + path;
}

// Return whether two of these offsets are of equal paths, which are kept once only if they are of
// neighbours.
static inline bool
target_process_is_path(const struct target_process *target, uint32_t path, uint32_t other)
{
    return path == other ||
           strcmp(target_process_path(target, path), target_process_path(target, other)) == 0;
}

// Return the mapping at an address, NULL if there is none. Borrowed until the next refresh.
const struct target_mapping *target_process_mapping_at(const struct target_process *target,
                                                       uint64_t addr);

// Open the file of a module for reading, whatever its name is or was and in whatever namespace. If
// the kernel does not permit map_files, the name may lead to another file by now.
// Fails as target_file_open does if neither /proc/PID/map_files nor /proc/PID/root gives it.
enum err target_process_open_module_file(const struct target_process *target,
                                         const struct target_module *module,
                                         int *out_fd,
                                         struct err_info *info) MUST_USE;
