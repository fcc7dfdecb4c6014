// SPDX-License-Identifier: MIT
// perf_map: see perf_map.h.
#include "symbols/perf_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hex.h"
#include "host/file.h"

// A busy JavaScript engine writes some ten megabytes.
enum {
    MAX_FILE_BYTES = 512 << 20
};

void perf_map_release(struct perf_map *map)
{
    strbuf_release(&map->text);
    u64_vec_release(&map->names);
    range_index_release(&map->ranges);
    map->bad_line_count = 0;
}

// Parses a number and the blanks after it. NULL if there is none or it needs more than 64 bits.
static const char *parse_hex(const char *at, uint64_t *out)
{
    if (at[0] == '0' && (at[1] | 0x20) == 'x') {
        at += 2;
    }
    if (hex_digit(*at) < 0) {
        return NULL;
    }
    uint64_t value = 0;
    for (; hex_digit(*at) >= 0; at++) {
        if (value >> 60 != 0) {
            return NULL;
        }
        value = value << 4 | (uint64_t)hex_digit(*at);
    }
    if (*at != ' ' && *at != '\t') {
        return NULL;
    }
    *out = value;
    return at + strspn(at, " \t");
}

// `line` is zero-terminated; false if it is not as it should be.
static bool parse_line(const char *line, struct range *out, const char **out_name)
{
    uint64_t size;
    const char *at = parse_hex(line, &out->begin);
    at = at != NULL ? parse_hex(at, &size) : NULL;
    if (at == NULL || *at == 0 || __builtin_add_overflow(out->begin, size, &out->end)) {
        return false;
    }
    *out_name = at;
    return true;
}

static enum err add_line(struct perf_map *map, const char *line)
{
    struct range range = {0};
    const char *name = NULL;
    if (*line == 0) {
        return ERR_OK;
    }
    if (!parse_line(line, &range, &name) || map->names.len == UINT32_MAX) {
        map->bad_line_count++;
        return ERR_OK;
    }
    TRY(range_index_add(&map->ranges, range.begin, range.end, (uint32_t)map->names.len));
    return u64_vec_push(&map->names, (uint64_t)(name - map->text.data));
}

enum err perf_map_parse(struct perf_map *map, struct strbuf *text)
{
    CLEANUP(perf_map_release) struct perf_map fresh = {.text = *text};
    *text = (struct strbuf){0};
    char *end = fresh.text.data != NULL ? fresh.text.data + fresh.text.len : NULL;
    for (char *line = fresh.text.data; line < end;) {
        char *line_end = memchr(line, '\n', (size_t)(end - line));
        line_end = line_end != NULL ? line_end : end;
        *line_end = 0; // `end` itself holds the terminator already
        TRY(add_line(&fresh, line));
        line = line_end + 1;
    }
    TRY(range_index_seal(&fresh.ranges));
    *map = fresh;
    fresh = (struct perf_map){0};
    return ERR_OK;
}

enum err perf_map_read(struct perf_map *map, const char *path, struct err_info *info)
{
    CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0) {
        return err_set_errno(info, errno, "cannot open '%s'", path);
    }
    if (!S_ISREG(status.st_mode)) {
        return err_set(info, ERR_UNSUPPORTED, "'%s' is not a file", path);
    }
    if (status.st_uid != geteuid() && status.st_uid != 0 && geteuid() != 0) {
        return err_set(info, ERR_PERMISSION, "'%s' belongs to another user", path);
    }
    CLEANUP(strbuf_release) struct strbuf text = {0};
    TRY(file_read_fd(fd, path, MAX_FILE_BYTES, &text, info));
    enum err result = perf_map_parse(map, &text);
    return result == ERR_OK ? ERR_OK : err_set(info, result, "no memory to read '%s'", path);
}

const char *perf_map_find(const struct perf_map *map, uint64_t pc)
{
    const struct range *latest = NULL;
    struct range_search search = range_index_search(&map->ranges, pc);
    for (const struct range *range = range_index_next(&map->ranges, &search, pc); range != NULL;
         range = range_index_next(&map->ranges, &search, pc)) {
        if (latest == NULL || range->value > latest->value) {
            latest = range;
        }
    }
    return latest != NULL ? map->text.data + map->names.items[latest->value] : NULL;
}
