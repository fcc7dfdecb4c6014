// SPDX-License-Identifier: MIT
#include "symbols/elf/elf_file.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "host/os/file.h"

// Real debug information compresses by a factor of two to five.
enum {
    MAX_INFLATION = 32,
    MIN_INFLATED_BYTES = 16 << 20
};

enum {
    READ_BYTES_MAX = 64 << 20
}; // limit for files that are not mapped

#ifndef ELFCOMPRESS_ZSTD
#    define ELFCOMPRESS_ZSTD 2
#endif

// An inflated section; libelf only borrows it.
struct inflated {
    struct inflated *next;
    char bytes[];
};

enum err elf_file_open(struct elf_file *file, const char *path, struct err_info *info)
{
    // Opening a device may have side effects, so check the type first.
    struct stat status;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
        return err_set(info, ERR_UNSUPPORTED, "'%s' is not a file", path);
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return err_set_errno(info, errno, "cannot open '%s'", path);
    }
    return elf_file_open_fd(file, fd, path, info);
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
    fresh.size_bytes = (uint64_t)status.st_size;
    (void)elf_version(EV_CURRENT); // cannot fail for the version of our build
    const bool is_small = fresh.size_bytes <= READ_BYTES_MAX;
    fresh.elf = elf_begin(fd, is_small ? ELF_C_READ : ELF_C_READ_MMAP, NULL);
    if (fresh.elf == NULL || elf_kind(fresh.elf) != ELF_K_ELF) {
        return err_set(info, ERR_UNSUPPORTED, "'%s' is not an ELF file", path);
    }
    *file = fresh;
    fresh = (struct elf_file){.fd = -1};
    return ERR_OK;
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

bool elf_file_has_dwarf(const struct elf_file *file)
{
    bool has_info = false;
    uint64_t inflated = 0;
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
        uint64_t more = inflated_bytes(section, &header, name);
        if (more > allowed - inflated) {
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
