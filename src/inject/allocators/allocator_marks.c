// SPDX-License-Identifier: MIT
#include "inject/allocators/allocator_marks.h"

#include <gelf.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/minmax.h"

enum {
    SEARCHED_BYTES_MAX = 64 << 20, // of a segment
    PIECE_BYTES = 16 << 10,        // that are read at once
    MARK_BYTES_MAX = 16,           // of a text
};

// Whether the file has its texts apart from its code. Old linkers put both into one segment.
static bool has_texts_apart(Elf *elf, size_t count)
{
    GElf_Phdr header;
    for (size_t i = 0; i < count; i++) {
        if (gelf_getphdr(elf, (int)i, &header) != NULL && header.p_type == PT_LOAD &&
            header.p_flags == PF_R && header.p_offset != 0) {
            return true;
        }
    }
    return false;
}

// A text that an allocator prints. Few other texts have its byte at `place`.
struct mark {
    const char *text;
    size_t len;
    const char *allocator;
    size_t place;
};

static const struct mark marks[] = {
    {"<jemalloc>", 10, "jemalloc", 0},
    {"mimalloc: ", 10, "mimalloc", 8},
    {"TCMALLOC_", 9, "tcmalloc", 0},
};

// Whether the text is among the bytes. To search for one byte takes a fifth of what memmem takes.
static bool has_mark(const char *bytes, size_t len, const struct mark *mark)
{
    const char *end = bytes + len;
    const char *at = bytes;
    while ((at = memchr(at, mark->text[mark->place], (size_t)(end - at))) != NULL) {
        const char *start = at - mark->place;
        if ((size_t)(at - bytes) >= mark->place && (size_t)(end - start) >= mark->len &&
            memcmp(start, mark->text, mark->len) == 0) {
            return true;
        }
        at++;
    }
    return false;
}

static const char *find_mark(const char *bytes, size_t len)
{
    for (size_t k = 0; k < ARRAY_LEN(marks); k++) {
        if (has_mark(bytes, len, marks + k)) {
            return marks[k].allocator;
        }
    }
    return NULL;
}

// Search a part of the file, a piece at a time: to get megabytes of memory for it would cost a
// short run a tenth of its time.
static const char *find_printed_in(int fd, uint64_t offset, uint64_t len)
{
    char piece[PIECE_BYTES];
    for (uint64_t at = 0; at < len; at += PIECE_BYTES - MARK_BYTES_MAX) {
        const size_t wanted = (size_t)min_u64(PIECE_BYTES, len - at);
        const ssize_t got = pread(fd, piece, wanted, (off_t)(offset + at));
        const char *allocator = got > 0 ? find_mark(piece, (size_t)got) : NULL;
        if (allocator != NULL || got < (ssize_t)wanted) {
            return allocator;
        }
    }
    return NULL;
}

const char *allocator_marks_find(const struct elf_file *file)
{
    size_t count = 0;
    (void)elf_getphdrnum(file->elf, &count); // on failure there are none
    const bool is_apart = has_texts_apart(file->elf, count);
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr header;
        if (gelf_getphdr(file->elf, (int)i, &header) == NULL || header.p_type != PT_LOAD ||
            (is_apart && header.p_flags != PF_R) || header.p_offset > INT64_MAX) {
            continue;
        }
        const char *allocator = find_printed_in(file->fd, header.p_offset,
                                                min_u64(header.p_filesz, SEARCHED_BYTES_MAX));
        if (allocator != NULL) {
            return allocator;
        }
    }
    return NULL;
}
