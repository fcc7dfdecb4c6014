// SPDX-License-Identifier: MIT
#include "symbols/jit/perf_map.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "host/os/file.h"
#include "host/text/number.h"
#include "symbols/jit/jit_dump.h"

// A busy JavaScript engine writes some ten megabytes.
enum {
    MAX_FILE_BYTES = 128 << 20
};

// Parse a number and the blanks after it. Return NULL if there is none or it needs more than 64
// bits.
static const char *parse_hex(const char *at, uint64_t *out)
{
    if (at[0] == '0' && (at[1] | 0x20) == 'x') {
        at += 2;
    }
    if (!number_take(&at, 16, out) || *out == UINT64_MAX || (*at != ' ' && *at != '\t')) {
        return NULL;
    }
    return at + strspn(at, " \t");
}

// Add the code of `line`, which is zero-terminated. A malformed line is left out.
static enum err add_line(struct jit_map *map, const char *line)
{
    uint64_t begin;
    uint64_t size;
    if (*line == 0) {
        return ERR_OK;
    }
    const char *name = parse_hex(line, &begin);
    name = name != NULL ? parse_hex(name, &size) : NULL;
    if (name == NULL || *name == 0) {
        return ERR_OK;
    }
    const struct bytes text = {.data = (const uint8_t *)name, .len = strlen(name)};
    return jit_map_add(map, begin, size, text);
}

enum err perf_map_add_lines(struct jit_map *map, struct strbuf *text)
{
    char *end = text->data != NULL ? text->data + text->len : NULL;
    for (char *line = text->data; line < end;) {
        char *line_end = memchr(line, '\n', (size_t)(end - line));
        line_end = line_end != NULL ? line_end : end;
        *line_end = 0; // `end` itself holds the terminator already
        TRY(add_line(map, line));
        line = line_end + 1;
    }
    return ERR_OK;
}

enum err perf_map_add_file(struct jit_map *map,
                           int fd,
                           const char *path,
                           uint32_t owner,
                           int64_t since_s,
                           struct err_info *info)
{
    struct stat status;
    if (fstat(fd, &status) != 0) {
        return err_set_errno(info, errno, "cannot stat '%s'", path);
    }
    if (!S_ISREG(status.st_mode)) {
        return err_set(info, ERR_UNSUPPORTED, "'%s' is not a file", path);
    }
    if (status.st_uid != owner && status.st_uid != 0) {
        return err_set(info, ERR_PERMISSION, "'%s' belongs to another user", path);
    }
    if (status.st_mtime < since_s) {
        return err_set(info, ERR_NOT_FOUND, "'%s' is older than the process", path);
    }
    if (status.st_size > MAX_FILE_BYTES) {
        return err_set(info, ERR_LIMIT, "'%s' has more than %d MiB", path, MAX_FILE_BYTES >> 20);
    }
    CLEANUP(strbuf_release) struct strbuf text = {0};
    TRY(file_read_fd(fd, path, MAX_FILE_BYTES, &text, info));
    enum err result = jit_dump_parse(strbuf_bytes(&text), map);
    if (result == ERR_CORRUPT) {
        result = perf_map_add_lines(map, &text);
    }
    return result == ERR_OK ? ERR_OK : err_set(info, result, "no memory to read '%s'", path);
}
