// SPDX-License-Identifier: MIT
// perf_map: see perf_map.h.
#include "symbols/jit/perf_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hex.h"
#include "host/os/file.h"
#include "symbols/jit/jit_dump.h"

// A busy JavaScript engine writes some ten megabytes.
enum {
    MAX_FILE_BYTES = 128 << 20
};

void perf_map_release(struct perf_map *map)
{
    strbuf_release(&map->text);
    u64_vec_release(&map->names);
    range_index_release(&map->ranges);
    map_u64_release(&map->latest);
    map->bad_line_count = 0;
}

// Parse a number and the blanks after it. Return NULL if there is none or it needs more than 64
// bits.
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

// Parse `line`, which is zero-terminated. Return false if it is malformed.
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

enum err perf_map_add(struct perf_map *map, uint64_t begin, uint64_t size, struct bytes name)
{
    uint64_t end;
    if (map->names.len >= UINT32_MAX || __builtin_add_overflow(begin, size, &end)) {
        map->bad_line_count++;
        return ERR_OK;
    }
    const uint32_t number = (uint32_t)map->names.len;
    const uint64_t place = map->text.len;
    strbuf_append(&map->text, name.data, name.len);
    strbuf_append_char(&map->text, '\0');
    TRY(strbuf_result(&map->text));
    TRY(range_index_add(&map->ranges, begin, end, number));
    TRY(map_u64_put(&map->latest, begin, number));
    return u64_vec_push(&map->names, place);
}

enum err perf_map_add_move(struct perf_map *map, uint64_t old_begin, uint64_t begin, uint64_t size)
{
    const uint32_t *known = map_u64_find(&map->latest, old_begin);
    uint64_t end;
    if (known == NULL || map->names.len >= UINT32_MAX ||
        __builtin_add_overflow(begin, size, &end)) {
        map->bad_line_count++;
        return ERR_OK;
    }
    const uint64_t place = map->names.items[*known];
    const uint32_t number = (uint32_t)map->names.len;
    TRY(range_index_add(&map->ranges, begin, end, number));
    TRY(map_u64_put(&map->latest, begin, number));
    return u64_vec_push(&map->names, place);
}

static enum err add_line(struct perf_map *map, const char *line)
{
    struct range range = {0};
    const char *name = NULL;
    if (*line == 0) {
        return ERR_OK;
    }
    if (!parse_line(line, &range, &name)) {
        map->bad_line_count++;
        return ERR_OK;
    }
    const struct bytes text = {.data = (const uint8_t *)name, .len = strlen(name)};
    return perf_map_add(map, range.begin, range.end - range.begin, text);
}

static enum err add_lines(struct perf_map *map, struct strbuf *text)
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

enum err perf_map_seal(struct perf_map *map)
{
    return range_index_seal(&map->ranges);
}

enum err perf_map_parse(struct perf_map *map, struct strbuf *text)
{
    CLEANUP(perf_map_release) struct perf_map fresh = {0};
    CLEANUP(strbuf_release) struct strbuf taken = *text;
    *text = (struct strbuf){0};
    TRY(add_lines(&fresh, &taken));
    TRY(perf_map_seal(&fresh));
    *map = fresh;
    fresh = (struct perf_map){0};
    return ERR_OK;
}

enum err perf_map_add_file(struct perf_map *map,
                           int fd,
                           const char *path,
                           uint32_t owner,
                           int64_t since_s,
                           struct err_info *info)
{
    struct stat status;
    if (fstat(fd, &status) != 0) {
        return err_set_errno(info, errno, "cannot look at '%s'", path);
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
    CLEANUP(strbuf_release) struct strbuf text = {0};
    TRY(file_read_fd(fd, path, MAX_FILE_BYTES, &text, info));
    enum err result = jit_dump_parse(strbuf_bytes(&text), map);
    if (result == ERR_CORRUPT) {
        result = add_lines(map, &text);
    }
    return result == ERR_OK ? ERR_OK : err_set(info, result, "no memory to read '%s'", path);
}

enum err perf_map_read(struct perf_map *map, const char *path, struct err_info *info)
{
    CLEANUP(fd_closep)
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
    if (fd < 0) {
        return err_set_errno(info, errno, "cannot open '%s'", path);
    }
    CLEANUP(perf_map_release) struct perf_map fresh = {0};
    TRY(perf_map_add_file(&fresh, fd, path, geteuid(), INT64_MIN, info));
    if (perf_map_seal(&fresh) != ERR_OK) {
        return err_set(info, ERR_NO_MEMORY, "no memory to read '%s'", path);
    }
    *map = fresh;
    fresh = (struct perf_map){0};
    return ERR_OK;
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
