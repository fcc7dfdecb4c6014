// SPDX-License-Identifier: MIT
#include "symbols/elf/debug_search.h"

#include <string.h>

#include "host/os/file.h"
#include "host/os/target_file.h"
#include "host/text/strbuf.h"
#include "symbols/elf/debuginfod.h"

static const char standard_debug_dir[] = "/usr/lib/debug";

enum {
    MAX_BUILD_ID_BYTES = 64
};

// Where a path of the target may be found.
struct place {
    const char *prefix; // a folder that the user names; "": none
    int root_pid;       // below the root of this process; 0: of cairn's own
};

// Set the i-th place. Return false after the last. A process with cairn's own root has no other.
static bool place_at(const struct name_sources *sources, size_t i, struct place *out)
{
    *out = (struct place){.prefix = ""};
    if (i < sources->executable_dir_count) {
        out->prefix = sources->executable_dirs[i];
        return true;
    }
    i -= sources->executable_dir_count;
    if (sources->root_pid > 0 && !target_file_shares_root(sources->root_pid)) {
        if (i == 0) {
            out->root_pid = sources->root_pid;
            return true;
        }
        i--;
    }
    return i == 0;
}

// Open a path of the target in a place.
static enum err
open_in(const struct place *place, const char *path, struct elf_file *out, struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf full = {0};
    if (place->root_pid == 0 && *place->prefix == '\0' && *path != '/') {
        return elf_file_open(out, path, info);
    }
    if (*place->prefix == '\0') {
        return elf_file_open_target(out, place->root_pid, path, info);
    }
    strbuf_printf(&full, "%s%s%s", place->prefix, *path != '/' ? "/" : "", path);
    TRY(strbuf_result(&full));
    return elf_file_open(out, strbuf_text(&full), info);
}

static bool same_bytes(struct bytes a, struct bytes b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

// Open `path` as the module if it is the requested one. Otherwise set `*result` and `info` to the
// reason, unless they hold a more important one: a file with the wrong content matters more than a
// missing one.
static bool try_module(const struct place *place,
                       const char *path,
                       struct bytes build_id,
                       struct elf_file *out,
                       enum err *result,
                       struct err_info *info)
{
    struct err_info detail = {0};
    CLEANUP(elf_file_close) struct elf_file file = {.fd = -1};
    const enum err opened = open_in(place, path, &file, &detail);
    if (opened == ERR_OK && build_id.len > 0 && !same_bytes(elf_file_build_id(&file), build_id)) {
        *result = err_set(info, ERR_CORRUPT, "'%s' is not the file that ran: its build-id differs",
                          file.path);
    } else if (opened == ERR_OK) {
        *result = ERR_OK;
        *out = file;
        file = (struct elf_file){.fd = -1};
        return true;
    } else if (opened == ERR_NO_MEMORY || (opened != ERR_NOT_FOUND && *result == ERR_NOT_FOUND)) {
        *result = err_set(info, opened, "%s", err_text(&detail));
    }
    return opened == ERR_NO_MEMORY;
}

enum err debug_search_module(const struct name_sources *sources,
                             const char *path,
                             struct bytes build_id,
                             struct elf_file *out,
                             struct err_info *info)
{
    struct place place;
    enum err result = err_set(info, ERR_NOT_FOUND, "there is no '%s'", path);
    for (size_t i = 0; place_at(sources, i, &place); i++) {
        if (try_module(&place, path, build_id, out, &result, info) ||
            (*place.prefix != '\0' &&
             try_module(&place, path_file_name(path), build_id, out, &result, info))) {
            return result;
        }
    }
    return result;
}

// The required properties of a separate debug file.
struct proof {
    struct bytes build_id; // empty: none
    uint32_t crc;
    bool has_crc;
};

// Open `path`, made by strbuf_printf, if it has the required properties and DWARF. `place` NULL: it
// is a path of the user's choice.
static enum err try_file(const struct place *place,
                         const struct strbuf *path,
                         const struct proof *proof,
                         struct elf_file *out)
{
    TRY(strbuf_result(path));
    CLEANUP(elf_file_close) struct elf_file file = {.fd = -1};
    TRY(place != NULL ? open_in(place, strbuf_text(path), &file, NULL)
                      : elf_file_open(&file, strbuf_text(path), NULL));
    struct bytes build_id = elf_file_build_id(&file);
    if (proof->build_id.len > 0 && build_id.len > 0) {
        if (!same_bytes(build_id, proof->build_id)) {
            return ERR_NOT_FOUND;
        }
    } else {
        uint32_t crc = 0;
        if (!proof->has_crc || elf_file_crc(&file, &crc) != ERR_OK || crc != proof->crc) {
            return ERR_NOT_FOUND;
        }
    }
    if (!elf_file_has_dwarf(&file)) {
        return ERR_NOT_FOUND;
    }
    *out = file;
    file = (struct elf_file){.fd = -1};
    return ERR_OK;
}

// Return the i-th debug directory, NULL after the last.
static const char *debug_dir(const struct name_sources *sources, size_t i)
{
    if (i < sources->debug_dir_count) {
        return sources->debug_dirs[i];
    }
    return i == sources->debug_dir_count ? standard_debug_dir : NULL;
}

static bool is_final(enum err result)
{
    return result == ERR_OK || result == ERR_NO_MEMORY;
}

// Try <prefix><debug dir>/<rest> for every prefix and directory.
static enum err try_debug_dirs(const struct name_sources *sources,
                               const char *rest,
                               const struct proof *proof,
                               struct elf_file *out)
{
    const char *directory;
    for (size_t i = 0; (directory = debug_dir(sources, i)) != NULL; i++) {
        struct place place;
        for (size_t k = 0; place_at(sources, k, &place); k++) {
            CLEANUP(strbuf_release) struct strbuf path = {0};
            strbuf_printf(&path, "%s/%s", directory, rest);
            const bool is_users = place.root_pid == 0 && *place.prefix == '\0';
            enum err result = try_file(is_users ? NULL : &place, &path, proof, out);
            if (is_final(result)) {
                return result;
            }
        }
    }
    return ERR_NOT_FOUND;
}

// Try <debug dir>/<name><suffix> in the user's debug directories.
static enum err try_flat(const struct name_sources *sources,
                         const char *name,
                         const char *suffix,
                         const struct proof *proof,
                         struct elf_file *out)
{
    for (size_t i = 0; i < sources->debug_dir_count; i++) {
        CLEANUP(strbuf_release) struct strbuf path = {0};
        strbuf_printf(&path, "%s/%s%s", sources->debug_dirs[i], name, suffix);
        enum err result = try_file(NULL, &path, proof, out);
        if (is_final(result)) {
            return result;
        }
    }
    return ERR_NOT_FOUND;
}

static enum err
by_build_id(const struct name_sources *sources, const struct proof *proof, struct elf_file *out)
{
    if (proof->build_id.len < 2 || proof->build_id.len > MAX_BUILD_ID_BYTES) {
        return ERR_NOT_FOUND;
    }
    CLEANUP(strbuf_release) struct strbuf rest = {0};
    strbuf_printf(&rest, ".build-id/%02x/", proof->build_id.data[0]);
    strbuf_append_hex(&rest, (struct bytes){proof->build_id.data + 1, proof->build_id.len - 1});
    strbuf_append_text(&rest, ".debug");
    TRY(strbuf_result(&rest));
    return try_debug_dirs(sources, strbuf_text(&rest), proof, out);
}

static int directory_len(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? (int)(slash - path) : 0;
}

static enum err by_debuglink(const struct name_sources *sources,
                             const char *path,
                             const struct elf_file *module,
                             const char *link,
                             const struct proof *proof,
                             struct elf_file *out)
{
    static const char *const beside[] = {"", ".debug/"};
    const struct place place = {.prefix = "", .root_pid = module->root_pid};
    CLEANUP(text_freep) char *real = elf_file_real_path(module);
    const char *opened_path = real != NULL ? real : module->path;
    for (size_t i = 0; i < ARRAY_LEN(beside); i++) {
        CLEANUP(strbuf_release) struct strbuf candidate = {0};
        strbuf_printf(&candidate, "%.*s/%s%s", directory_len(opened_path), opened_path, beside[i],
                      link);
        enum err result = try_file(&place, &candidate, proof, out);
        if (is_final(result)) {
            return result;
        }
    }
    enum err flat = try_flat(sources, link, "", proof, out);
    if (is_final(flat)) {
        return flat;
    }
    CLEANUP(strbuf_release) struct strbuf rest = {0};
    strbuf_printf(&rest, "%.*s/%s", directory_len(path), path, link);
    TRY(strbuf_result(&rest));
    const char *relative = strbuf_text(&rest);
    return try_debug_dirs(sources, relative + (*relative == '/'), proof, out);
}

// Try the file whose path `fetch` returns.
static enum err from_debuginfod(struct debuginfod *servers,
                                enum err (*fetch)(struct debuginfod *servers,
                                                  struct bytes build_id,
                                                  struct strbuf *out_path),
                                const struct proof *proof,
                                struct elf_file *out)
{
    CLEANUP(strbuf_release) struct strbuf path = {0};
    TRY(fetch(servers, proof->build_id, &path));
    const enum err result = try_file(NULL, &path, proof, out);
    if (!is_final(result) && servers != NULL) {
        debuginfod_note_wrong(servers);
    }
    return result;
}

enum err debug_search_dwarf(const struct name_sources *sources,
                            const char *path,
                            struct bytes build_id,
                            const struct elf_file *module,
                            struct elf_file *out)
{
    struct proof proof = {.build_id = build_id};
    enum err result = by_build_id(sources, &proof, out);
    if (result == ERR_NOT_FOUND && build_id.len > 0) {
        result = try_flat(sources, path_file_name(path), ".debug", &proof, out);
    }
    if (result == ERR_NOT_FOUND && module != NULL) {
        const char *link = elf_file_debuglink(module, &proof.crc);
        proof.has_crc = link != NULL;
        if (link != NULL) {
            result = by_debuglink(sources, path, module, link, &proof, out);
        }
    }
    if (!is_final(result) && build_id.len > 0) {
        result = from_debuginfod(NULL, debuginfod_find_fetched, &proof, out);
    }
    if (!is_final(result) && sources->servers != NULL && build_id.len > 0) {
        result = from_debuginfod(sources->servers, debuginfod_fetch, &proof, out);
    }
    return result;
}
