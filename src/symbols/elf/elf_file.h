// SPDX-License-Identifier: MIT
// elf_file: an ELF file on disk, opened through libelf, and the few facts that decide what it is
// good for: its build-id, its .gnu_debuglink, and whether it holds DWARF or symbols.
//
// Only regular files are opened, and without ever blocking: a module's path comes from the profiled
// process and may name anything. Of small files only the sections that are asked for are read: one
// that is cut while it is open (a program that is built again) is then damaged and no SIGBUS.
// Larger ones are mapped, so that their pages are the page cache's and not ours. Compressed
// sections that claim to inflate to absurd sizes are refused before libdw inflates them. Owns the
// descriptor and the Elf handle. Context: H; libelf handles belong to one thread.
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
    struct inflated *inflated; // owned; the sections that elf_file_inflate() inflated
};

// ERR_NOT_FOUND and the other errors of open(), ERR_UNSUPPORTED if it is no regular file or no ELF.
enum err elf_file_open(struct elf_file *file, const char *path, struct err_info *info) MUST_USE;

// As above for a descriptor that is open already, which it takes over, also on failure.
enum err elf_file_open_fd(struct elf_file *file, int fd, const char *path, struct err_info *info)
    MUST_USE;

// Accepts a zeroed or closed one, and leaves a zeroed one.
void elf_file_close(struct elf_file *file);

// Borrowed from the file; empty if it has none.
struct bytes elf_file_build_id(const struct elf_file *file);

// Whether it has debugging information that we are willing to inflate.
bool elf_file_has_dwarf(const struct elf_file *file);

// Inflates the debug sections that zstd compressed, which libdw before 0.189 cannot: it then finds
// them as if they never had been. To be called before dwarf_begin_elf(), after elf_file_has_dwarf()
// has bounded what they take. ERR_CORRUPT, ERR_NO_MEMORY.
enum err elf_file_inflate(struct elf_file *file) MUST_USE;

// Whether the last string of each section of debugging strings ends in it: libdw (0.188) reads a
// string to its end without asking where its section ends. To be called once libdw has inflated
// them (dwarf_begin_elf).
bool elf_file_debug_strings_end(const struct elf_file *file);

// Whether it has a full symbol table, which is what strip removes.
bool elf_file_has_symtab(const struct elf_file *file);

// The base name of its separate debug file and the checksum that this must have. Borrowed; NULL if
// there is none, or if it is no plain file name.
const char *elf_file_debuglink(const struct elf_file *file, uint32_t *out_crc);

// CRC-32 of the whole file, as .gnu_debuglink means it.
enum err elf_file_crc(const struct elf_file *file, uint32_t *out_crc) MUST_USE;
