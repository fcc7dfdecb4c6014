// SPDX-License-Identifier: MIT
#include "cli/record/record_options.h"

#include <string.h>
#include <unistd.h>

#include "aggregate/memory_budget.h"
#include "base/compiler.h"
#include "base/err.h"
#include "host/os/new_file.h"
#include "host/os/process_search.h"
#include "host/text/number.h"
#include "host/text/toml.h"
#include "inject/allocators/allocator_names.h"
#include "session/books/sampling_level.h"

#define SAMPLE_BYTES_MIN 16u

#define FIELD(field) offsetof(struct record_words, field)

static const char *const overflow_choices[] = {"wait", "sample", NULL};

// clang-format off
const struct option_spec record_option_specs[RECORD_OPTION_COUNT] = {
    OPTION(0, "no-children", FLAG, NULL, FIELD(settings.no_children),
           "record only PROGRAM, not its child processes",
           .group = "What is recorded"),
    OPTION(0, "allocator", TEXT, "FUNCTION=NAME,...", FIELD(allocator),
           "also record calls of NAME, which has the arguments of FUNCTION: "
           "malloc=my_alloc,free=my_free; C++ names are mangled"),
    OPTION(0, "all-allocators", FLAG, NULL, FIELD(settings.recorder.searches_libraries),
           "find allocators in the libraries of PROGRAM by the names that are in use (je_malloc, "
           "mi_malloc), also in libraries that it loads later; --pid always does"),
    OPTION(0, "overflow", CHOICE, "wait|sample", FIELD(overflow),
           "what to do when a thread allocates faster than the recorder reads: wait makes it wait "
           "and loses nothing; sample records only some blocks, so figures become estimates "
           "(default: wait)",
           .choices = overflow_choices),
    OPTION(0, "sample", SIZE, "BYTES", FIELD(settings.recorder.sample_bytes),
           "record about one block in BYTES allocated bytes (16B to 64MiB; 512KiB without BYTES); "
           "figures are then estimates with stated errors; the totals of allocations and bytes "
           "stay exact",
           .when_alone = "512KiB"),
    OPTION(0, "python", FLAG, NULL, FIELD(settings.recorder.reads_python),
           "show Python functions (CPython 3.10 to 3.14) in call stacks, in place of the "
           "interpreter's"),
    OPTION(0, "blocks", FLAG, NULL, FIELD(settings.recorder.lists_blocks),
           "store each block that is live at the end or at the peak, for 'cairn report --blocks'"),
    OPTION(0, "no-symbols", FLAG, NULL, FIELD(settings.without_symbols),
           "do not resolve symbols; 'cairn report' or 'cairn symbolize' can do it later"),
    OPTION(0, "force", FLAG, NULL, FIELD(settings.recorder.allow_own_malloc),
           "record PROGRAM by the preload library, which does not see an allocator inside PROGRAM: "
           "for systems where cairn may not trace PROGRAM"),
    OPTION(0, "max-frames", COUNT, "N", FIELD(settings.recorder.max_frames),
           "maximum frames per stack; the middle of deeper stacks is omitted (default: 512, "
           "maximum: 1536)", .minimum = 8,
           .group = "Limits"),
    OPTION(0, "max-memory", SIZE, "SIZE", FIELD(settings.recorder.max_memory_bytes),
           "memory limit of the recorder, at least 64MiB, and with --listen or --push of all "
           "processes of cairn together; beyond it the rarest call stacks are "
           "merged and new blocks are sampled, which the report states (default: a quarter of the "
           "RAM or of the cgroup limit)"),
    OPTION(0, "duration", DURATION_MS, "TIME", FIELD(settings.recorder.run.duration_ms),
           "stop recording after this time; PROGRAM continues"),
    OPTION(0, "delay", DURATION_MS, "TIME", FIELD(settings.recorder.run.delay_ms),
           "start recording after this time"),
};
// clang-format on

static MUST_USE enum err parse_allocators(const char *text,
                                          const char *origin,
                                          struct allocator_name_vec *out,
                                          struct err_info *info)
{
    struct err_info detail = {0};
    const enum err err = allocator_names_parse(text, out, &detail);
    return err == ERR_OK ? ERR_OK : err_set(info, err, "%s: %s", origin, err_text(&detail));
}

// check_plan.c and name_options.c read the rest of the file.
static MUST_USE enum err
read_allocator_file(const char *path, struct allocator_name_vec *out, struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    CLEANUP(toml_release) struct toml file = {0};
    TRY(file_read_trusted(path, TOML_MAX_BYTES, &text, info));
    TRY(toml_parse(strbuf_bytes(&text), path, &file, info));
    for (size_t i = 0; i < file.entries.len; i++) {
        const struct toml_entry *entry = &file.entries.items[i];
        if (strcmp(toml_text(&file, file.tables.items[entry->table].name), "record") != 0) {
            continue;
        }
        if (strcmp(toml_text(&file, entry->key), "allocator") != 0 || entry->type != TOML_TEXT) {
            return err_set(info, ERR_INVALID,
                           "%s:%u: [record] has one setting: allocator = \"FUNCTION=NAME,...\"",
                           path, entry->line);
        }
        TRY(parse_allocators(toml_text(&file, entry->text), "[record] allocator of cairn.toml", out,
                             info));
    }
    return ERR_OK;
}

// Read the user's own allocation functions: from --allocator, or without it from cairn.toml of
// the working directory. ERR_INVALID with a sentence for malformed names and a malformed file.
static MUST_USE enum err allocator_options_read(const struct record_words *words,
                                                struct allocator_name_vec *out,
                                                struct err_info *info)
{
    static const char path[] = "cairn.toml";
    if (words->allocator != NULL) {
        return parse_allocators(words->allocator, "--allocator", out, info);
    }
    return !words->ignores_settings && access(path, R_OK) == 0
               ? read_allocator_file(path, out, info)
               : ERR_OK;
}

enum err record_words_take(const struct record_words *words,
                           struct allocator_name_vec *names,
                           struct record_settings *out,
                           struct err_info *info)
{
    struct record_settings settings = words->settings;
    struct recorder_options *recorder = &settings.recorder;
    const uint64_t sample = recorder->sample_bytes;
    recorder->may_sample = strcmp(words->overflow, "sample") == 0;
    const struct mistake mistakes[] = {
        {sample != 0 && (sample < SAMPLE_BYTES_MIN || sample > BLOCK_WEIGHT_INTERVAL_MAX),
         "--sample: give 16B to 64MiB"},
        {sample != 0 && recorder->may_sample, "--sample and --overflow=sample cannot be combined"},
        {recorder->searches_libraries && recorder->allow_own_malloc,
         "--all-allocators and --force cannot be combined"},
        {recorder->max_memory_bytes != 0 && recorder->max_memory_bytes < MEMORY_BUDGET_MIN,
         "--max-memory: the recorder needs at least 64MiB"},
    };
    TRY(mistakes_check(mistakes, ARRAY_LEN(mistakes), info));
    TRY(allocator_options_read(words, names, info));
    recorder->allocator_names = names;
    *out = settings;
    return ERR_OK;
}

void attach_targets_release(struct attach_targets *targets)
{
    u32_vec_release(&targets->pids);
}

static enum err parse_pids(const char *text, struct u32_vec *out, struct err_info *info)
{
    for (const char *at = text;; at++) {
        uint64_t pid = 0;
        const bool is_number = number_take(&at, 10, &pid) && pid > 0 && pid <= INT32_MAX;
        if (!is_number || (*at != ',' && *at != '\0')) {
            return err_set(info, ERR_INVALID,
                           "--pid: '%.40s' is not a whole number of at least 1, or a list of such "
                           "numbers like 17,18",
                           text);
        }
        TRY(u32_vec_push(out, (uint32_t)pid));
        if (*at == '\0') {
            return ERR_OK;
        }
    }
}

static enum err find_named(const char *name, struct attach_targets *out, struct err_info *info)
{
    const size_t before = out->pids.len;
    if (*name == '\0') {
        return err_set(info, ERR_INVALID, "--name: the name is empty");
    }
    TRY(process_search(name, &out->pids, info));
    out->is_by_name = true;
    return out->pids.len > before
               ? ERR_OK
               : err_set(info, ERR_NOT_FOUND,
                         "no process has the name '%.80s', neither as its command name nor as the "
                         "file name of its executable",
                         name);
}

enum err attach_targets_find(const struct option_word_vec *words,
                             struct attach_targets *out,
                             struct err_info *info)
{
    for (size_t i = 0; i < words->len; i++) {
        const struct option_word *word = words->items + i;
        TRY(word->spec->letter == 'p' ? parse_pids(word->text, &out->pids, info)
                                      : find_named(word->text, out, info));
    }
    u32_vec_sort_once(&out->pids);
    return out->pids.len <= ATTACH_TARGETS_MAX
               ? ERR_OK
               : err_set(info, ERR_LIMIT, "%zu processes are too many, the limit is %d",
                         out->pids.len, ATTACH_TARGETS_MAX);
}
