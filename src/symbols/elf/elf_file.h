// SPDX-License-Identifier: MIT
// elf_file: an ELF file on disk, opened through libelf, and the facts that decide its use: its
// build-id, its .gnu_debuglink, and whether it holds DWARF or symbols.
//
// It opens regular files only, and never blocks: the path of a module comes from the profiled
// process and may name anything. No file is mapped, only the requested sections are read, so
// truncating the open file (a new build of the program) makes it damaged and gives no SIGBUS. A
// file that claims far more bytes than it has on disk is refused, and so are compressed sections
// that claim an absurd size, before libdw inflates them. Owns the descriptor and the Elf handle.
// Context: H; libelf handles belong to one thread.
#pragma once

#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"

struct inflated;

struct elf_file {
    int fd;     // owned
    Elf *elf;   // owned; NULL: not open
    char *path; // owned
    uint64_t size_bytes;
    int root_pid;              // the path is below the root of this process; 0: of cairn's own
    bool is_trusted;           // only root and the user can have written it
    struct inflated *inflated; // owned; sections that elf_file_inflate() inflated
};

// Open `path`, which the user names. The errors of open(), ERR_NOT_FOUND among them;
// ERR_UNSUPPORTED if the file is not regular or not ELF; ERR_LIMIT if it claims too many bytes.
enum err elf_file_open(struct elf_file *file, const char *path, struct err_info *info) MUST_USE;

// Open `path`, which a profiled process names (target_file.h). root_pid 0: below cairn's own root.
enum err
elf_file_open_target(struct elf_file *file, int root_pid, const char *path, struct err_info *info)
    MUST_USE;

// Open an ELF file from a descriptor, which it takes over, also on failure. Fails as elf_file_open
// does.
enum err elf_file_open_fd(struct elf_file *file, int fd, const char *path, struct err_info *info)
    MUST_USE;

// Close and zero it. Accepts a zeroed or closed one.
void elf_file_close(struct elf_file *file);

// Return the path behind all symbolic links, as its process names it; the caller frees it. NULL if
// it is not known.
char *elf_file_real_path(const struct elf_file *file);

// Return the build-id, borrowed from the file; empty if it has none.
struct bytes elf_file_build_id(const struct elf_file *file);

// Return whether the file has debug information of an acceptable inflated size.
bool elf_file_has_dwarf(const struct elf_file *file);

// Inflate debug sections that are compressed with zstd, which libdw before 0.189 cannot do. libdw
// then finds them uncompressed. Call it before dwarf_begin_elf() and after elf_file_has_dwarf(),
// which bounds their size. ERR_CORRUPT, ERR_NO_MEMORY.
enum err elf_file_inflate(struct elf_file *file) MUST_USE;

// Return whether the last string of each section of debug strings ends in it. libdw (0.188) reads a
// string to its end and does not check the end of its section. Call it after dwarf_begin_elf(),
// which inflates the sections.
bool elf_file_debug_strings_end(const struct elf_file *file);

// Return whether the file has the full symbol table, which strip removes.
bool elf_file_has_symtab(const struct elf_file *file);

// Return the base name of the separate debug file and its required checksum. Borrowed; NULL if
// there is none, or if it is not a plain file name.
const char *elf_file_debuglink(const struct elf_file *file, uint32_t *out_crc);

// Compute the CRC-32 of the whole file, as .gnu_debuglink defines it.
enum err elf_file_crc(const struct elf_file *file, uint32_t *out_crc) MUST_USE;
