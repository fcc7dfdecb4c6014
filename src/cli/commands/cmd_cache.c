// SPDX-License-Identifier: MIT
// cmd_cache: `cairn cache`: lists the cache of names, sets its limit and empties it.
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "cli/commands/commands.h"
#include "cli/options/option_values.h"
#include "cli/text/screen_text.h"
#include "host/text/format.h"
#include "symbols/name_cache.h"

static uint64_t sum_bytes(const struct cache_file_vec *files)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < files->len; i++) {
        bytes += files->items[i].bytes;
    }
    return bytes;
}

static void print_file(const struct name_cache *cache, const struct cache_file *file)
{
    CLEANUP(cache_entry_release) struct cache_entry entry = {0};
    CLEANUP(strbuf_release) struct strbuf module = {0};
    char used[32] = "";
    struct tm local;
    const time_t second = (time_t)(file->used_ns / NS_PER_S);
    if (localtime_r(&second, &local) != NULL) {
        (void)strftime(used, sizeof(used), "%Y-%m-%d %H:%M", &local); // fits
    }
    // Damaged files and files of other builds are unusable. The cache removes them when it needs
    // room.
    const bool is_read =
        name_cache_read_file(cache, file->name, &entry) == ERR_OK && entry.is_found;
    screen_append(&module, is_read ? entry.names.module : "(no longer used)");
    (void)printf("%10s  %s  %8s  %s\n", format_bytes(file->bytes).text, used,
                 is_read ? format_count(entry.names.place_count).text : "-", strbuf_text(&module));
}

static MUST_USE enum err print_files(const struct name_cache *cache, struct err_info *info)
{
    CLEANUP(cache_file_vec_release) struct cache_file_vec files = {0};
    TRY(name_cache_list(cache, &files, info));
    if (files.len > 0) {
        (void)printf("%10s  %-16s  %8s  %s\n", "size", "last used", "places", "module");
    }
    for (size_t i = 0; i < files.len; i++) {
        print_file(cache, &files.items[i]);
    }
    return ERR_OK;
}

static MUST_USE enum err print_size(const struct name_cache *cache, struct err_info *info)
{
    CLEANUP(cache_file_vec_release) struct cache_file_vec files = {0};
    CLEANUP(strbuf_release) struct strbuf folder = {0};
    TRY(name_cache_list(cache, &files, info));
    screen_append(&folder, strbuf_text(&cache->folder));
    (void)printf("%s of %s in %s, %s\n", format_bytes(sum_bytes(&files)).text,
                 format_bytes(name_cache_limit(cache)).text,
                 format_things(files.len, "file", "files").text, strbuf_text(&folder));
    return ERR_OK;
}

static MUST_USE enum err
list_cache(const struct name_cache *cache, const char *word, struct err_info *info)
{
    (void)word;
    TRY(print_files(cache, info));
    return print_size(cache, info);
}

static MUST_USE enum err
bound_cache(const struct name_cache *cache, const char *word, struct err_info *info)
{
    (void)word;
    return print_size(cache, info);
}

static MUST_USE enum err
clear_cache(const struct name_cache *cache, const char *word, struct err_info *info)
{
    size_t count = 0;
    (void)word;
    TRY(name_cache_trim(cache, 0, &count, info));
    (void)printf("%s removed\n", format_things(count, "file", "files").text);
    return ERR_OK;
}

static MUST_USE enum err
set_limit(const struct name_cache *cache, const char *word, struct err_info *info)
{
    uint64_t bytes;
    if (!size_parse(word, &bytes)) {
        return err_set(info, ERR_INVALID, "limit: '%.100s' is not a size such as 64MiB or 0", word);
    }
    TRY(name_cache_set_limit(cache, bytes, info));
    return print_size(cache, info);
}

static const struct {
    const char *name;
    bool takes_word;
    enum err (*run)(const struct name_cache *cache, const char *word, struct err_info *info);
} actions[] = {{"list", false, list_cache},
               {"size", false, bound_cache},
               {"clear", false, clear_cache},
               {"limit", true, set_limit}};

static MUST_USE enum err run_action(int count, char **words, struct err_info *info)
{
    CLEANUP(name_cache_release) struct name_cache cache = {0};
    const char *name = count > 0 ? words[0] : "list";
    TRY(name_cache_init(&cache));
    if (cache.folder.len == 0) {
        return err_set(info, ERR_NOT_FOUND, "there is no cache: HOME is not set");
    }
    for (size_t i = 0; i < ARRAY_LEN(actions); i++) {
        if (strcmp(actions[i].name, name) == 0 && count <= 1 + actions[i].takes_word &&
            (!actions[i].takes_word || count == 2)) {
            return actions[i].run(&cache, count == 2 ? words[1] : "", info);
        }
    }
    return err_set(info, ERR_UNSUPPORTED, "the action must be list, size, clear or limit SIZE");
}

static int run(void *fields, int count, char **operands)
{
    struct err_info info = {0};
    (void)fields; // it has none
    const enum err problem = run_action(count, operands, &info);
    if (problem == ERR_UNSUPPORTED) {
        return command_usage_error(&command_cache, &info);
    }
    return command_end(problem, &info, STATUS_OK);
}

static const char *const action_names[] = {"list", "size", "clear", "limit", NULL};

const struct command command_cache = {
    .name = "cache",
    .summary = "manage the cache of symbol names",
    .synopsis = "[list | size | clear | limit SIZE]",
    .description =
        "Symbol names read from debug information are cached in ~/.cache/cairn (or\n"
        "$XDG_CACHE_HOME/cairn), so that later runs need not read it again.\n\n"
        "  list         list the entries with their sizes, most recently used first\n"
        "  size         print the size of the cache and its limit\n"
        "  clear        remove all entries\n"
        "  limit SIZE   set the limit (default: 256MiB); 0 disables the cache\n\n"
        "The least recently used entries are removed first. debuginfod has its own cache.\n",
    .examples = "cairn cache limit 64MiB\n",
    .words = action_names,
    .run = run,
};
