// SPDX-License-Identifier: MIT
// run_summary: prints a finished recording as lines on stderr. See run_summary.h.
#include "cli/report/run_summary.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "cli/options/command.h"
#include "cli/options/filter_options.h"
#include "cli/report/report.h"
#include "cli/text/screen_text.h"
#include "cli/warnings/warnings.h"
#include "formats/import/input_file.h"
#include "host/containers/memory_end.h"

static const char plain_characters[] =
    "/._+-%,:@0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

// Append the path as a word of a shell, so that the line can be copied. What a screen does not show
// becomes \x.., which bash and zsh read in $'...'.
static void append_quoted(struct strbuf *out, const char *path)
{
    strbuf_append_text(out, path[0] == '-' ? "./" : ""); // else it would be an option
    if (path[strspn(path, plain_characters)] == '\0') {
        strbuf_append_text(out, path);
        return;
    }
    CLEANUP(strbuf_release) struct strbuf shown = {0};
    screen_append(&shown, path);
    const bool has_hidden = strcmp(strbuf_text(&shown), path) != 0;
    strbuf_append_text(out, has_hidden ? "$'" : "'");
    for (const char *at = path; *at != '\0'; at++) {
        if (*at == '\'') {
            strbuf_append_text(out, has_hidden ? "\\'" : "'\\''");
        } else {
            strbuf_append_text(out, has_hidden && *at == '\\' ? "\\" : "");
            strbuf_append_char(out, *at);
        }
    }
    strbuf_append_char(out, '\'');
}

static MUST_USE enum err summarize_profile(const struct profile *profile, struct err_info *info)
{
    static const struct filter_words words = {.suppresses = true};
    CLEANUP(applied_filter_release) struct applied_filter applied = {0};
    memory_end_forget();
    TRY(filter_words_apply(&words, &profile->recording, &applied, info));
    const struct report_options options = {
        .filter = applied.filter,
        .sort = COST_COUNT,
        .use_color = command_use_color(STDERR_FILENO),
        .without_stacks = true, // stacks would need memory without a bound
        .width_columns = command_width(STDERR_FILENO),
    };
    CLEANUP(report_release) struct report report = {0};
    TRY(report_build(profile, &options, &report, info));
    report_print_oom(&report, "cairn: ", stderr);
    warnings_write(profile, "cairn: ", stderr);
    TRY(report_write_summary(&report, stderr));
    return memory_end_result();
}

// Open what was written, because the recorder does not keep the history that findings are made of.
// What could not be written, or not be read again, is summarized without history.
static MUST_USE enum err open_profile(const struct recording *recording,
                                      const char *path,
                                      struct profile **out,
                                      struct err_info *info)
{
    static const struct name_sources no_sources = {.is_off = true}; // names are in it already
    struct stat status;
    struct err_info trouble;
    if (path != NULL && stat(path, &status) == 0 && S_ISREG(status.st_mode) &&
        input_open_profile(path, &no_sources, NULL, out, &trouble) == ERR_OK) {
        return ERR_OK;
    }
    return profile_from_recording(recording, &no_sources, NULL, out, info);
}

void run_summary_print(const struct recording *recording, const char *path)
{
    struct err_info info = {0};
    CLEANUP(profile_closep) struct profile *profile = NULL;
    enum err problem = open_profile(recording, path, &profile, &info);
    if (problem == ERR_OK) {
        problem = summarize_profile(profile, &info);
    }
    if (problem != ERR_OK) {
        (void)command_error(&info); // printed here; the status stays the program's
        return;
    }
    if (path != NULL) {
        CLEANUP(strbuf_release) struct strbuf quoted = {0};
        CLEANUP(strbuf_release) struct strbuf safe = {0};
        append_quoted(&quoted, path);
        screen_append(&safe, strbuf_text(&quoted));
        // No other place to report an error.
        (void)fprintf(stderr, "\n  cairn report %s\n", strbuf_text(&safe));
    }
}
