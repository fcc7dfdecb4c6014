// SPDX-License-Identifier: MIT
// name_options: see name_options.h. Its only global, g_interrupted, is set by a signal handler.
#include "cli/options/name_options.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "host/os/new_file.h"
#include "profile/select/name_regex.h"

static volatile sig_atomic_t g_interrupted; // Ctrl-C was pressed since the servers were asked

enum {
    SAID_AFTER_MS = 5000
};

enum {
    DEBUG_DIR,
    EXECUTABLE_DIR,
    HIDE,
};

#define NAME_OPTION(name, value, help) \
    OPTION(0, name, EACH, value, offsetof(struct name_words, words), help)

// clang-format off
const struct option_spec name_option_specs[NAME_OPTION_COUNT] = {
    [DEBUG_DIR] = NAME_OPTION("debug-dir", "DIR",
                "also search DIR for separate debug files, laid out as in /usr/lib/debug or as "
                "NAME.debug; repeatable"),
    [EXECUTABLE_DIR] = NAME_OPTION("executable-dir", "DIR",
                "search DIR first for programs and libraries, by path or by name; repeatable"),
    [HIDE] = NAME_OPTION("hide", "REGEX",
                "treat matching functions as wrappers of an allocator: their callers are the call "
                "sites; repeatable"),
};
// clang-format on

static void interrupt_search(int number)
{
    (void)number;
    g_interrupted = 1;
}

// Catch Ctrl-C once while the servers are asked, then restore the earlier action. An ignored signal
// stays ignored.
static void catch_interrupts(struct name_places *places)
{
    struct sigaction before;
    const struct sigaction ours = {.sa_handler = interrupt_search,
                                   .sa_flags = SA_RESETHAND | SA_RESTART};
    if (!places->is_catching && sigaction(SIGINT, NULL, &before) == 0 &&
        before.sa_handler == SIG_DFL) {
        g_interrupted = 0;
        places->is_catching = sigaction(SIGINT, &ours, NULL) == 0;
    }
}

// Return whether SIGINT is pending for a command that waits for it itself. Otherwise a pending one
// is on its way to the handler: this thread may block it, and the main thread does not.
static bool is_interrupt_pending(const struct name_places *places)
{
    sigset_t pending;
    return places->awaits_interrupts && sigpending(&pending) == 0 &&
           sigismember(&pending, SIGINT) == 1;
}

static bool go_on(void *context, uint64_t done_bytes, uint64_t total_bytes)
{
    static const char what[] = "asking debuginfod for names (Ctrl-C: do without)";
    struct name_places *places = context;
    catch_interrupts(places);
    progress_update(&places->progress, what, done_bytes, total_bytes);
    if (places->progress.stream == NULL && !places->has_said) { // once, where no line can change
        const uint64_t now_ms = clock_monotonic_ms();
        places->asked_ms = places->asked_ms != 0 ? places->asked_ms : now_ms;
        places->has_said = now_ms - places->asked_ms >= SAID_AFTER_MS;
        if (places->has_said) {
            (void)fprintf(stderr, "cairn: %s\n", what); // no other place to report an error
        }
    }
    return g_interrupted == 0 && !is_interrupt_pending(places);
}

static void end_request(void *context, enum debuginfod_end end)
{
    static const char *const sentences[] = {
        [DEBUGINFOD_ANSWERED] = NULL,
        [DEBUGINFOD_INTERRUPTED] = "debuginfod is no longer asked; names may be missing",
        [DEBUGINFOD_SILENT] = "debuginfod's servers do not answer; names may be missing",
        [DEBUGINFOD_FAILED] = "asking debuginfod failed; names may be missing",
        [DEBUGINFOD_WRONG] =
            "debuginfod's servers gave a file that was not asked for; names may be missing",
    };
    struct name_places *places = context;
    progress_clear(&places->progress);
    places->asked_ms = 0;
    if (sentences[end] != NULL) {
        (void)fprintf(stderr, "cairn: %s\n", sentences[end]); // no other place to report an error
    }
    if (places->is_catching) {
        (void)sigaction(SIGINT, &(struct sigaction){.sa_handler = SIG_DFL}, NULL); // cannot fail
        places->is_catching = false;
    }
}

// `origin` is what an error message blames.
static MUST_USE enum err take_wrappers(struct name_places *places,
                                       const char *text,
                                       const char *origin,
                                       struct err_info *info)
{
    CLEANUP(name_regex_release) struct name_regex regex = {0};
    TRY(name_regex_compile(&regex, text, origin, info));
    return folder_vec_push(&places->wrappers, text);
}

// Take [report] of cairn.toml. check_plan.c reads the rest of the file.
static MUST_USE enum err take_settings(struct name_places *places, struct err_info *info)
{
    static const char path[] = "cairn.toml";
    CLEANUP(strbuf_release) struct strbuf text = {0};
    struct toml *file = &places->settings;
    if (access(path, R_OK) != 0) {
        return ERR_OK;
    }
    TRY(file_read_trusted(path, TOML_MAX_BYTES, &text, info));
    TRY(toml_parse(strbuf_bytes(&text), path, file, info));
    for (size_t i = 0; i < file->entries.len; i++) {
        const struct toml_entry *entry = &file->entries.items[i];
        if (strcmp(toml_text(file, file->tables.items[entry->table].name), "report") != 0) {
            continue;
        }
        if (strcmp(toml_text(file, entry->key), "wrappers") != 0 || entry->type != TOML_TEXT) {
            return err_set(info, ERR_INVALID,
                           "%s:%u: [report] has one setting: wrappers = \"REGEX\"", path,
                           entry->line);
        }
        TRY(take_wrappers(places, toml_text(file, entry->text), "[report] wrappers of cairn.toml",
                          info));
    }
    return ERR_OK;
}

// Sort the words by option.
static MUST_USE enum err
take_words(struct name_places *places, const struct name_words *words, struct err_info *info)
{
    for (size_t i = 0; i < words->words.len; i++) {
        const struct option_word *word = &words->words.items[i];
        struct stat status;
        if (word->spec == &name_option_specs[HIDE]) {
            TRY(take_wrappers(places, word->text, "--hide", info));
            continue;
        }
        if (stat(word->text, &status) != 0 || !S_ISDIR(status.st_mode)) {
            return err_set(info, ERR_NOT_FOUND, "--%s: directory '%s' does not exist",
                           word->spec->name, word->text);
        }
        const bool is_debug = word->spec == &name_option_specs[DEBUG_DIR];
        TRY(folder_vec_push(is_debug ? &places->debug_dirs : &places->executable_dirs, word->text));
    }
    return ERR_OK;
}

enum err
name_places_init(struct name_places *places, const struct name_words *words, struct err_info *info)
{
    sigset_t blocked;
    *places = (struct name_places){0};
    places->awaits_interrupts =
        pthread_sigmask(SIG_SETMASK, NULL, &blocked) == 0 && sigismember(&blocked, SIGINT) == 1;
    progress_init(&places->progress, stderr);
    TRY(words != NULL ? take_words(places, words, info) : ERR_OK);
    TRY(words != NULL && words->ignores_settings ? ERR_OK : take_settings(places, info));
    places->sources = (struct name_sources){
        .executable_dirs = places->executable_dirs.items,
        .executable_dir_count = places->executable_dirs.len,
        .debug_dirs = places->debug_dirs.items,
        .debug_dir_count = places->debug_dirs.len,
        .wrappers = places->wrappers.items,
        .wrapper_count = places->wrappers.len,
    };
    if (name_cache_init(&places->cache) == ERR_OK) {
        places->sources.cache = &places->cache;
    }
    if (debuginfod_is_wanted()) {
        places->servers =
            (struct debuginfod){.go_on = go_on, .end_request = end_request, .context = places};
        places->sources.servers = &places->servers;
    }
    return ERR_OK;
}

void name_places_release(struct name_places *places)
{
    debuginfod_release(&places->servers);
    name_cache_release(&places->cache);
    folder_vec_release(&places->executable_dirs);
    folder_vec_release(&places->debug_dirs);
    folder_vec_release(&places->wrappers);
    toml_release(&places->settings);
}
