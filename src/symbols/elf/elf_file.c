// SPDX-License-Identifier: MIT
#include "symbols/elf/elf_file.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <gelf.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "host/os/file.h"
#include "host/os/target_file.h"

// Real debug information compresses by a factor of two to five.
enum {
    MAX_INFLATION = 32,
    MIN_INFLATED_BYTES = 16 << 20
};

// A file system that compresses may hold a file in far fewer bytes than it has.
#define CLAIMED_BYTES_MIN ((uint64_t)64 << 20)
#define CLAIMED_FACTOR    32
#define HELD_UNIT_BYTES   512 // of st_blocks, inode(7)

// What is read of a section as a whole. The largest programs have some ten million symbols.
#define SYMBOLS_BYTES_MAX ((uint64_t)1 << 30) // and their names
#define NOTE_BYTES_MAX    ((uint64_t)16 << 20)
#define LINK_BYTES_MAX    ((uint64_t)64 << 10)
#define DWARF_BYTES_MAX   ((uint64_t)4 << 30) // all sections; they are kept in memory

enum {
    SECTIONS_MAX = 65536,
};

#ifndef ELFCOMPRESS_ZSTD
#    define ELFCOMPRESS_ZSTD 2
#endif

// An inflated section; libelf only borrows it.
struct inflated {
    struct inflated *next;
    char bytes[];
};

char *elf_file_real_path(const struct elf_file *file)
{
    char link[40];
    char path[PATH_MAX];
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", file->fd); // fits
    const ssize_t len = readlink(link, path, sizeof(path));
    return len > 0 && path[0] == '/' ? strndup(path, (size_t)len) : NULL;
}

void elf_file_close(struct elf_file *file)
{
    bool was_open = file->elf != NULL || file->path != NULL;
    (void)elf_end(file->elf); // returns the remaining reference count
    if (was_open) {
        fd_closep(&file->fd);
    }
    while (file->inflated != NULL) {
        struct inflated *next = file->inflated->next;
        free(file->inflated);
        file->inflated = next;
    }
    free(file->path);
    *file = (struct elf_file){.fd = -1};
}

struct bytes elf_file_build_id(const struct elf_file *file)
{
    const void *id = NULL;
    ssize_t len = dwelf_elf_gnu_build_id(file->elf, &id);
    return (struct bytes){.data = id, .len = len > 0 ? (size_t)len : 0};
}

// Return the next section after `section` (NULL: the first) with its header and name; NULL at the
// end.
static Elf_Scn *next_section(Elf *elf, Elf_Scn *section, GElf_Shdr *header, const char **out_name)
{
    size_t names_index;
    if (elf_getshdrstrndx(elf, &names_index) != 0) {
        return NULL;
    }
    while ((section = elf_nextscn(elf, section)) != NULL) {
        if (gelf_getshdr(section, header) == NULL) {
            continue;
        }
        const char *name = elf_strptr(elf, names_index, header->sh_name);
        if (name != NULL) {
            *out_name = name;
            return section;
        }
    }
    return NULL;
}

// Return the size of the section after libdw inflates it.
static uint64_t inflated_bytes(Elf_Scn *section, const GElf_Shdr *header, const char *name)
{
    if ((header->sh_flags & SHF_COMPRESSED) != 0) {
        GElf_Chdr compression;
        return gelf_getchdr(section, &compression) != NULL ? compression.ch_size : 0;
    }
    if (strncmp(name, ".zdebug", 7) == 0) {
        ssize_t size = dwelf_scn_gnu_compressed_size(section);
        return size > 0 ? (uint64_t)size : 0;
    }
    return 0;
}

static uint64_t limit_of(const GElf_Shdr *header, const char *name)
{
    switch (header->sh_type) {
    case SHT_SYMTAB:
    case SHT_DYNSYM:
    case SHT_STRTAB:
        return SYMBOLS_BYTES_MAX;
    case SHT_NOTE:
        return NOTE_BYTES_MAX;
    case SHT_NOBITS:
        return UINT64_MAX;
    default:
        return strcmp(name, ".gnu_debuglink") == 0 ? LINK_BYTES_MAX : UINT64_MAX;
    }
}

static enum err check_sections(const struct elf_file *file, struct err_info *info)
{
    size_t count = 0;
    size_t names_index = 0;
    if (elf_getshdrnum(file->elf, &count) == 0 && count > SECTIONS_MAX) {
        return err_set(info, ERR_LIMIT, "'%s' has %zu sections; cairn reads at most %d", file->path,
                       count, (int)SECTIONS_MAX);
    }
    (void)elf_getshdrstrndx(file->elf, &names_index); // without it sections have no names
    for (Elf_Scn *section = elf_nextscn(file->elf, NULL); section != NULL;
         section = elf_nextscn(file->elf, section)) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) == NULL) {
            continue;
        }
        const char *name = elf_strptr(file->elf, names_index, header.sh_name) ?: "";
        if (header.sh_size > limit_of(&header, name)) {
            return err_set(info, ERR_LIMIT,
                           "the section '%.64s' of '%s' has %" PRIu64
                           " bytes; cairn reads at most %" PRIu64,
                           name, file->path, header.sh_size, limit_of(&header, name));
        }
    }
    return ERR_OK;
}

enum err elf_file_open(struct elf_file *file, const char *path, struct err_info *info)
{
    int fd = -1;
    TRY(target_file_open_named(path, &fd, info));
    return elf_file_open_fd(file, fd, path, info);
}

enum err
elf_file_open_target(struct elf_file *file, int root_pid, const char *path, struct err_info *info)
{
    int fd = -1;
    TRY(target_file_open(root_pid, path, &fd, info));
    TRY(elf_file_open_fd(file, fd, path, info));
    file->root_pid = root_pid;
    file->is_trusted = file->is_trusted && root_pid == 0;
    return ERR_OK;
}

static bool claims_too_much(const struct stat *status)
{
    const uint64_t held_bytes = (uint64_t)status->st_blocks * HELD_UNIT_BYTES;
    return (uint64_t)status->st_size > max_u64(CLAIMED_BYTES_MIN, held_bytes * CLAIMED_FACTOR);
}

enum err elf_file_open_fd(struct elf_file *file, int fd, const char *path, struct err_info *info)
{
    CLEANUP(elf_file_close) struct elf_file fresh = {.fd = fd, .path = strdup(path)};
    if (fresh.path == NULL) {
        return ERR_NO_MEMORY;
    }
    struct stat status;
    if (fstat(fd, &status) != 0) {
        return err_set_errno(info, errno, "cannot stat '%s'", path);
    }
    if (!S_ISREG(status.st_mode)) {
        return err_set(info, ERR_UNSUPPORTED, "'%s' is not a file", path);
    }
    if (claims_too_much(&status)) {
        return err_set(info, ERR_LIMIT,
                       "'%s' claims %" PRIu64 " bytes, but has only %" PRIu64 " on disk", path,
                       (uint64_t)status.st_size, (uint64_t)status.st_blocks * HELD_UNIT_BYTES);
    }
    fresh.size_bytes = (uint64_t)status.st_size;
    fresh.is_trusted = target_file_is_trusted(&status);
    (void)elf_version(EV_CURRENT); // cannot fail for the version of our build
    fresh.elf = elf_begin(fd, ELF_C_READ, NULL);
    if (fresh.elf == NULL || elf_kind(fresh.elf) != ELF_K_ELF) {
        return err_set(info, ERR_UNSUPPORTED, "'%s' is not an ELF file", path);
    }
    TRY(check_sections(&fresh, info));
    *file = fresh;
    fresh = (struct elf_file){.fd = -1};
    return ERR_OK;
}

bool elf_file_has_dwarf(const struct elf_file *file)
{
    bool has_info = false;
    uint64_t inflated = 0;
    uint64_t stored = 0;
    uint64_t allowed = file->size_bytes * MAX_INFLATION;
    allowed = max_u64(allowed, MIN_INFLATED_BYTES);
    GElf_Shdr header;
    const char *name = NULL;
    for (Elf_Scn *section = next_section(file->elf, NULL, &header, &name); section != NULL;
         section = next_section(file->elf, section, &header, &name)) {
        if (header.sh_type == SHT_NOBITS) {
            continue;
        }
        has_info |= strcmp(name, ".debug_info") == 0 || strcmp(name, ".zdebug_info") == 0;
        const bool is_debug = strncmp(name, ".debug", 6) == 0 || strncmp(name, ".zdebug", 7) == 0;
        stored += is_debug ? min_u64(header.sh_size, DWARF_BYTES_MAX + 1) : 0;
        uint64_t more = inflated_bytes(section, &header, name);
        if (stored > DWARF_BYTES_MAX || more > allowed - inflated) {
            return false;
        }
        inflated += more;
    }
    return has_info;
}

// Replace the compressed bytes of `section` by the inflated ones.
static enum err inflate_section(struct elf_file *file, Elf_Scn *section, GElf_Shdr *header)
{
    GElf_Chdr compression;
    Elf_Data *data = elf_getdata(section, NULL);
    if (gelf_getchdr(section, &compression) == NULL || data == NULL ||
        data->d_size <= sizeof(Elf64_Chdr) || gelf_getclass(file->elf) != ELFCLASS64) {
        return ERR_CORRUPT;
    }
    struct inflated *inflated = malloc(sizeof(*inflated) + compression.ch_size);
    if (inflated == NULL) {
        return ERR_NO_MEMORY;
    }
    inflated->next = file->inflated;
    file->inflated = inflated;
    const size_t size = ZSTD_decompress(inflated->bytes, compression.ch_size,
                                        (const char *)data->d_buf + sizeof(Elf64_Chdr),
                                        data->d_size - sizeof(Elf64_Chdr));
    if (ZSTD_isError(size) || size != compression.ch_size) {
        return ERR_CORRUPT;
    }
    header->sh_flags &= ~(GElf_Xword)SHF_COMPRESSED;
    header->sh_addralign = compression.ch_addralign;
    header->sh_size = size;
    data->d_buf = inflated->bytes;
    data->d_size = size;
    return gelf_update_shdr(section, header) != 0 ? ERR_OK : ERR_CORRUPT;
}

enum err elf_file_inflate(struct elf_file *file)
{
    GElf_Shdr header;
    const char *name = NULL;
    for (Elf_Scn *section = next_section(file->elf, NULL, &header, &name); section != NULL;
         section = next_section(file->elf, section, &header, &name)) {
        GElf_Chdr compression;
        const bool is_compressed =
            header.sh_type != SHT_NOBITS && (header.sh_flags & SHF_COMPRESSED) != 0 &&
            strncmp(name, ".debug_", 7) == 0 && gelf_getchdr(section, &compression) != NULL;
        if (is_compressed && compression.ch_type == ELFCOMPRESS_ZSTD) {
            TRY(inflate_section(file, section, &header));
        }
    }
    return ERR_OK;
}

static bool is_of_debug_strings(const char *name)
{
    static const char *const names[] = {".debug_str", ".debug_line_str", ".zdebug_str",
                                        ".zdebug_line_str"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

bool elf_file_debug_strings_end(const struct elf_file *file)
{
    GElf_Shdr header;
    const char *name = NULL;
    for (Elf_Scn *section = next_section(file->elf, NULL, &header, &name); section != NULL;
         section = next_section(file->elf, section, &header, &name)) {
        if (header.sh_type == SHT_NOBITS || !is_of_debug_strings(name)) {
            continue;
        }
        const Elf_Data *data = elf_getdata(section, NULL);
        if (data != NULL && data->d_size > 0 && data->d_buf != NULL &&
            ((const char *)data->d_buf)[data->d_size - 1] != '\0') {
            return false;
        }
    }
    return true;
}

bool elf_file_has_symtab(const struct elf_file *file)
{
    GElf_Shdr header;
    for (Elf_Scn *section = elf_nextscn(file->elf, NULL); section != NULL;
         section = elf_nextscn(file->elf, section)) {
        if (gelf_getshdr(section, &header) != NULL && header.sh_type == SHT_SYMTAB) {
            return true;
        }
    }
    return false;
}

const char *elf_file_debuglink(const struct elf_file *file, uint32_t *out_crc)
{
    GElf_Word crc = 0;
    const char *name = dwelf_elf_gnu_debuglink(file->elf, &crc);
    if (name == NULL || *name == 0 || strchr(name, '/') != NULL) {
        return NULL;
    }
    *out_crc = crc;
    return name;
}

enum err elf_file_crc(const struct elf_file *file, uint32_t *out_crc)
{
    static const size_t step_bytes = 65536;
    CLEANUP(text_freep) char *buffer = malloc(step_bytes);
    if (buffer == NULL) {
        return ERR_NO_MEMORY;
    }
    uLong crc = crc32(0, NULL, 0);
    off_t offset = 0;
    for (;;) {
        ssize_t got = pread(file->fd, buffer, step_bytes, offset);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return ERR_IO;
        }
        if (got == 0) {
            *out_crc = (uint32_t)crc;
            return ERR_OK;
        }
        crc = crc32(crc, (const Bytef *)buffer, (uInt)got);
        offset += got;
    }
}
