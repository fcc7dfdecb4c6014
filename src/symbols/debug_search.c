// SPDX-License-Identifier: MIT
// debug_search: see debug_search.h.
#include "symbols/debug_search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/file.h"
#include "host/strbuf.h"
#include "symbols/debuginfod.h"

static const char standard_debug_dir[] = "/usr/lib/debug";

enum {
    PREFIX_COUNT = 3,
    MAX_BUILD_ID_BYTES = 64
};

// Where a path of the target may lie on our side; NULL: skip.
struct prefixes {
    const char *items[PREFIX_COUNT];
    char proc_root[32];
};

static void prefixes_init(struct prefixes *p, const struct debug_search *search)
{
    (void)snprintf(p->proc_root, sizeof(p->proc_root), "/proc/%d/root", search->root_pid);
    p->items[0] = search->sysroot;
    p->items[1] = search->root_pid > 0 ? p->proc_root : NULL;
    p->items[2] = "";
}

static bool same_bytes(struct bytes a, struct bytes b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

enum err debug_search_module(const struct debug_search *search,
                             const char *path,
                             struct bytes build_id,
                             struct elf_file *out,
                             struct err_info *info)
{
    struct prefixes prefixes;
    prefixes_init(&prefixes, search);
    enum err result = err_set(info, ERR_NOT_FOUND, "there is no '%s'", path);
    for (size_t i = 0; i < PREFIX_COUNT; i++) {
        if (prefixes.items[i] == NULL) {
            continue;
        }
        CLEANUP(strbuf_release) struct strbuf full = {0};
        strbuf_printf(&full, "%s%s", prefixes.items[i], path);
        TRY(strbuf_result(&full));
        CLEANUP(elf_file_close) struct elf_file file = {.fd = -1};
        // A file with the wrong content says more than one that is missing elsewhere.
        struct err_info detail = {0};
        enum err opened = elf_file_open(&file, strbuf_text(&full), &detail);
        if (opened == ERR_OK && build_id.len > 0 &&
            !same_bytes(elf_file_build_id(&file), build_id)) {
            result =
                err_set(info, ERR_CORRUPT, "'%s' is not the file that ran: its build-id differs",
                        strbuf_text(&full));
        } else if (opened == ERR_OK) {
            *out = file;
            file = (struct elf_file){.fd = -1};
            return ERR_OK;
        } else if (opened != ERR_NOT_FOUND && result == ERR_NOT_FOUND) {
            result = err_set(info, opened, "%s", detail.text);
        }
    }
    return result;
}

// What a separate debug file has to prove.
struct proof {
    struct bytes build_id; // empty: none
    uint32_t crc;
    bool has_crc;
};

// Opens `path` if it is what the proof asks for and has DWARF; `path` is as strbuf_printf made it.
static enum err try_file(const struct strbuf *path, const struct proof *proof, struct elf_file *out)
{
    TRY(strbuf_result(path));
    CLEANUP(elf_file_close) struct elf_file file = {.fd = -1};
    TRY(elf_file_open(&file, strbuf_text(path), NULL));
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

// The i-th debug directory, NULL after the last.
static const char *debug_dir(const struct debug_search *search, size_t i)
{
    if (i < search->debug_dir_count) {
        return search->debug_dirs[i];
    }
    return i == search->debug_dir_count ? standard_debug_dir : NULL;
}

// Tries <prefix><debug dir>/<rest> for every prefix and directory.
static enum err try_debug_dirs(const struct debug_search *search,
                               const char *rest,
                               const struct proof *proof,
                               struct elf_file *out)
{
    struct prefixes prefixes;
    prefixes_init(&prefixes, search);
    const char *directory;
    for (size_t i = 0; (directory = debug_dir(search, i)) != NULL; i++) {
        for (size_t k = 0; k < PREFIX_COUNT; k++) {
            if (prefixes.items[k] == NULL) {
                continue;
            }
            CLEANUP(strbuf_release) struct strbuf path = {0};
            strbuf_printf(&path, "%s%s/%s", prefixes.items[k], directory, rest);
            enum err result = try_file(&path, proof, out);
            if (result == ERR_OK || result == ERR_NO_MEMORY) {
                return result;
            }
        }
    }
    return ERR_NOT_FOUND;
}

static enum err
by_build_id(const struct debug_search *search, const struct proof *proof, struct elf_file *out)
{
    if (proof->build_id.len < 2 || proof->build_id.len > MAX_BUILD_ID_BYTES) {
        return ERR_NOT_FOUND;
    }
    CLEANUP(strbuf_release) struct strbuf rest = {0};
    strbuf_printf(&rest, ".build-id/%02x/", proof->build_id.data[0]);
    for (size_t i = 1; i < proof->build_id.len; i++) {
        strbuf_printf(&rest, "%02x", proof->build_id.data[i]);
    }
    strbuf_append_text(&rest, ".debug");
    TRY(strbuf_result(&rest));
    return try_debug_dirs(search, strbuf_text(&rest), proof, out);
}

static int directory_len(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? (int)(slash - path) : 0;
}

static enum err by_debuglink(const struct debug_search *search,
                             const char *path,
                             const char *opened_path,
                             const char *link,
                             const struct proof *proof,
                             struct elf_file *out)
{
    static const char *const beside[] = {"", ".debug/"};
    for (size_t i = 0; i < ARRAY_LEN(beside); i++) {
        CLEANUP(strbuf_release) struct strbuf candidate = {0};
        strbuf_printf(&candidate, "%.*s/%s%s", directory_len(opened_path), opened_path, beside[i],
                      link);
        enum err result = try_file(&candidate, proof, out);
        if (result == ERR_OK || result == ERR_NO_MEMORY) {
            return result;
        }
    }
    CLEANUP(strbuf_release) struct strbuf rest = {0};
    strbuf_printf(&rest, "%.*s/%s", directory_len(path), path, link);
    TRY(strbuf_result(&rest));
    const char *relative = strbuf_text(&rest);
    return try_debug_dirs(search, relative + (*relative == '/'), proof, out);
}

static enum err from_servers(const struct proof *proof, struct elf_file *out)
{
    CLEANUP(text_freep) char *path = NULL;
    TRY(debuginfod_fetch(proof->build_id, &path));
    CLEANUP(strbuf_release) struct strbuf name = {0};
    strbuf_append_text(&name, path);
    return try_file(&name, proof, out);
}

enum err debug_search_dwarf(const struct debug_search *search,
                            const char *path,
                            struct bytes build_id,
                            const struct elf_file *module,
                            struct elf_file *out)
{
    struct proof proof = {.build_id = build_id};
    enum err result = by_build_id(search, &proof, out);
    if (result == ERR_NOT_FOUND && module != NULL) {
        const char *link = elf_file_debuglink(module, &proof.crc);
        proof.has_crc = link != NULL;
        // Through symbolic links the file lies elsewhere than it was called.
        CLEANUP(text_freep) char *real = realpath(module->path, NULL);
        if (link != NULL) {
            result =
                by_debuglink(search, path, real != NULL ? real : module->path, link, &proof, out);
        }
    }
    if (result == ERR_NOT_FOUND && search->use_debuginfod && build_id.len > 0) {
        result = from_servers(&proof, out);
    }
    return result;
}
