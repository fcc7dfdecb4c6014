// SPDX-License-Identifier: MIT
// cmd_export: `cairn export FILE --to FORMAT`: converts a recording for other tools.
//
// The output goes to stdout if stdout is not a terminal or the format is text. Else it goes to a
// file that is named after the recording. The file is written under a temporary name and renamed at
// the end. On failure there is no file, or an older one is kept.
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "cli/commands/commands.h"
#include "cli/options/filter_options.h"
#include "cli/options/name_options.h"
#include "cli/options/option_values.h"
#include "cli/text/screen_text.h"
#include "cli/warnings/warnings.h"
#include "formats/export/exporter.h"
#include "host/os/file.h"
#include "host/os/new_file.h"
#include "host/text/strbuf.h"
#include "server/pages/report_page.h"

struct export_fields {
    const char *format;
    const char *output;
    const char *moment;
    enum cost cost;
    struct filter_words filter;
    struct name_words names;
    bool shows_wrappers;
    bool use_list;
    bool is_page;
};

static const struct export_fields defaults = {.cost = COST_COUNT};

#define FIELD(field) offsetof(struct export_fields, field)

// clang-format off
static const struct option_spec specs[] = {
    OPTION('t', "to", TEXT, "FORMAT", FIELD(format), "output format (see --list)"),
    OPTION('o', "output", NAME, "FILE", FIELD(output), "output file; - is standard output"),
    OPTION(0, "cost", COST, "COST", FIELD(cost),
           "cost to write, for formats with one figure per stack (default: peak): "
           COST_OPTION_NAMES),
    OPTION(0, "at", TEXT, "peak|end|TIME", FIELD(moment),
           "for pprof: moment of the in-use figures (default: peak); with a time such as 90s, "
           "later allocations are not counted"),
    OPTION(0, "show-wrappers", FLAG, NULL, FIELD(shows_wrappers),
           "show every frame of libraries and of wrappers of an allocator, in formats that fold "
           "them as the trees of cairn report do"),
    OPTION(0, "html", FLAG, NULL, FIELD(is_page), "same as --to html"),
    OPTION(0, "list", FLAG, NULL, FIELD(use_list), "list the formats and exit"),
};
// clang-format on

enum {
    WORDS_COLUMNS = 200 // of the page, not of a terminal
};

// Append a description of the filter.
static MUST_USE enum err append_filter(const struct export_view *view, struct strbuf *out)
{
    FILE *stream = strbuf_open_stream(out);
    if (stream == NULL) {
        return ERR_NO_MEMORY;
    }
    filter_print(&view->selection, view->filter, WORDS_COLUMNS, stream);
    (void)fclose(stream); // `out` remembers a failure
    return strbuf_result(out);
}

static enum err write_html(const struct export_view *view, FILE *out)
{
    CLEANUP(strbuf_release) struct strbuf filter_text = {0};
    TRY(append_filter(view, &filter_text));
    const struct report_page page = {.path = view->path,
                                     .profile = view->profile,
                                     .filter = view->filter,
                                     .filter_text = strbuf_text(&filter_text),
                                     .tool_version = CAIRN_VERSION};
    return report_page_write(&page, out);
}

// The viewer and its answers in one file. The format is here because the page holds answers of the
// server.
static const struct exporter exporter_html = {
    .name = "html",
    .file_suffix = ".html",
    .help = "any browser, without a server: the pages of cairn analyze in one file",
    .is_binary = true,
    .uses = EXPORT_USES_SERIES | EXPORT_JUDGES_LEAKS,
    .write = write_html,
};

static const struct exporter *find_format(const char *name)
{
    return strcmp(name, exporter_html.name) == 0 ? &exporter_html : exporter_find(name);
}

static int list_formats(void)
{
    static const char line[] = "%-12s %s\n";
    for (const struct exporter *const *at = exporters; *at != NULL; at++) {
        (void)printf(line, (*at)->name, (*at)->help); // checked below
    }
    (void)printf(line, exporter_html.name, exporter_html.help); // checked below
    return command_finish_output(STATUS_OK);
}

// Parse --at. A time within the run becomes the end of a range that begins with the run.
static MUST_USE enum err
read_moment(struct export_fields *fields, enum export_moment *out, struct err_info *info)
{
    const char *text = fields->moment;
    *out = EXPORT_AT_ANY;
    if (text == NULL) {
        return ERR_OK;
    }
    bool is_peak = strcmp(text, "peak") == 0;
    *out = is_peak ? EXPORT_AT_PEAK : EXPORT_AT_END;
    if (is_peak || strcmp(text, "end") == 0) {
        return ERR_OK;
    }
    struct value_range *time = &fields->filter.time;
    if (time->is_set) {
        return err_set(info, ERR_INVALID, "--at TIME cannot be combined with --time");
    }
    time->is_set = true;
    return duration_parse(text, &time->high)
               ? ERR_OK
               : err_set(info, ERR_INVALID, "--at: '%.100s' is not peak, end or a time such as 90s",
                         text);
}

static bool judges_leaks(const struct exporter *exporter)
{
    return (exporter->uses & EXPORT_JUDGES_LEAKS) != 0;
}

// Refuse options that contradict each other.
static MUST_USE enum err
check_words(const struct export_fields *fields, int operands, struct err_info *info)
{
    if (operands != 1) {
        return err_set(info, ERR_INVALID,
                       operands == 0 ? "no FILE given" : "only one FILE can be given");
    }
    if (fields->format == NULL) {
        return err_set(info, ERR_INVALID, "--to FORMAT is required; --list prints the formats");
    }
    const struct exporter *exporter = find_format(fields->format);
    if (exporter == NULL) {
        return err_set(info, ERR_INVALID,
                       "--to: unknown format '%.100s'; --list prints the formats", fields->format);
    }
    if (fields->cost != COST_COUNT && (exporter->uses & EXPORT_USES_COST) == 0) {
        return err_set(info, ERR_INVALID, "--cost: %s always contains all of its costs",
                       exporter->name);
    }
    if (fields->moment != NULL && (exporter->uses & EXPORT_USES_MOMENT) == 0) {
        return err_set(info, ERR_INVALID, "--at does not apply to %s", exporter->name);
    }
    if (fields->shows_wrappers && (exporter->uses & EXPORT_FOLDS) == 0) {
        return err_set(info, ERR_INVALID, "--show-wrappers: %s always has every frame",
                       exporter->name);
    }
    if (fields->filter.lifetimes.is_set && (exporter->uses & EXPORT_USES_SERIES) != 0) {
        return err_set(info, ERR_INVALID,
                       "--lifetime: %s is a series over time, and a recording does not say when "
                       "blocks of one lifetime were allocated",
                       exporter->name);
    }
    if (!judges_leaks(exporter) &&
        (fields->filter.rules.no_built_in || fields->filter.rules.no_embedded)) {
        return err_set(info, ERR_INVALID, "%s: only html and sarif leave out such leaks",
                       fields->filter.rules.no_built_in ? "--no-builtin-suppressions"
                                                        : "--no-embedded-suppressions");
    }
    if (filter_words_cut(&fields->filter) && (exporter->uses & EXPORT_USES_EVENTS) != 0) {
        return err_set(info, ERR_INVALID,
                       "--to %s: filters do not apply to the program's own events", exporter->name);
    }
    return filter_words_check(&fields->filter, info);
}

// Choose the path of the output: "-" for stdout.
static MUST_USE enum err choose_output(const struct export_fields *fields,
                                       const struct exporter *exporter,
                                       const char *input,
                                       struct strbuf *out)
{
    static const char suffix[] = ".cairn";
    if (fields->output != NULL) {
        strbuf_append_text(out, fields->output);
        return strbuf_result(out);
    }
    if (!exporter->is_binary || isatty(STDOUT_FILENO) != 1) {
        strbuf_append_char(out, '-');
        return strbuf_result(out);
    }
    strbuf_append_text(out, path_file_name(input));
    if (screen_ends_with(strbuf_text(out), suffix)) {
        strbuf_truncate(out, out->len - (sizeof(suffix) - 1));
    }
    strbuf_append_text(out, exporter->file_suffix);
    return strbuf_result(out);
}

// Choose the compression of a format whose readers choose by the file name. The name of a pipe or a
// device does not choose one.
static MUST_USE enum err choose_packing(const struct export_fields *fields,
                                        const struct exporter *exporter,
                                        enum packing *out,
                                        struct err_info *info)
{
    struct stat status;
    const char *path = fields->output;
    *out = PACKING_GZIP;
    if (!exporter->goes_by_name || path == NULL || screen_ends_with(path, ".gz") ||
        strcmp(path, "-") == 0 || (stat(path, &status) == 0 && !S_ISREG(status.st_mode))) {
        return ERR_OK;
    }
    if (!screen_ends_with(path, ".zst")) {
        return err_set(info, ERR_INVALID,
                       "--output: the name of a file for %s must end in .gz or .zst",
                       exporter->name);
    }
    *out = PACKING_ZSTD;
    return ERR_OK;
}

// Write the export. An output error is not returned here: the stream keeps it.
static MUST_USE enum err write_view(const struct exporter *exporter,
                                    const struct export_view *view,
                                    FILE *stream,
                                    struct err_info *info)
{
    enum err problem = export_write(exporter, view, stream);
    if (problem == ERR_OK || ferror(stream) != 0) {
        return ERR_OK;
    }
    return problem == ERR_LIMIT
               ? err_set(info, problem, "the recording is too large for this format")
               : problem;
}

static MUST_USE enum err write_to_file(const struct exporter *exporter,
                                       const struct export_view *view,
                                       const char *path,
                                       struct err_info *info)
{
    CLEANUP(replacement_abandon) struct replacement file = {0};
    TRY(replacement_begin(&file, path, FILE_MODE_BY_UMASK, info));
    TRY(write_view(exporter, view, file.stream, info));
    TRY(replacement_commit(&file, false, info));
    // A remark, only for a terminal.
    if (isatty(STDERR_FILENO) == 1) {
        (void)fprintf(stderr, "cairn: wrote %s\n", path);
    }
    return ERR_OK;
}

static MUST_USE enum err export_view(const struct exporter *exporter,
                                     const struct export_view *view,
                                     const struct export_fields *fields,
                                     const char *input,
                                     struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf output = {0};
    TRY(choose_output(fields, exporter, input, &output));
    return strcmp(strbuf_text(&output), "-") != 0
               ? write_to_file(exporter, view, strbuf_text(&output), info)
               : write_view(exporter, view, stdout, info);
}

static MUST_USE enum err export_file(const char *path,
                                     const struct export_fields *fields,
                                     enum export_moment moment,
                                     struct err_info *info)
{
    struct export_request request = {.exporter = find_format(fields->format),
                                     .cost = fields->cost,
                                     .moment = moment,
                                     .shows_wrappers = fields->shows_wrappers};
    TRY(choose_packing(fields, request.exporter, &request.packing, info));
    if (fields->output != NULL && file_is_same(path, fields->output)) {
        return err_set(info, ERR_INVALID, "--output: '%s' is the recording itself", path);
    }
    CLEANUP(name_places_release) struct name_places names = {0};
    CLEANUP(profile_closep) struct profile *profile = NULL;
    TRY(name_places_init(&names, &fields->names, info));
    TRY(warnings_open_profile(path, &names.sources, &profile, info));
    CLEANUP(applied_filter_release) struct applied_filter applied = {0};
    TRY(filter_words_apply(&fields->filter, &profile->recording, &applied, info));
    CLEANUP(export_view_release) struct export_view view = {0};
    TRY(export_view_build(profile, &applied.filter, &request, &view, info));
    view.path = path;
    filter_warn(&view.selection, NULL, &applied.filter);
    return export_view(request.exporter, &view, fields, path, info);
}

static int run(void *context, int count, char **operands)
{
    struct export_fields *fields = context;
    struct err_info info = {0};
    if (fields->use_list) {
        return list_formats();
    }
    if (fields->is_page && fields->format != NULL) {
        return command_refuse(&command_export, "--html and --to cannot be combined");
    }
    fields->format = fields->is_page ? exporter_html.name : fields->format;
    enum export_moment moment;
    if (check_words(fields, count, &info) != ERR_OK ||
        read_moment(fields, &moment, &info) != ERR_OK) {
        return command_usage_error(&command_export, &info);
    }
    fields->filter.suppresses = judges_leaks(find_format(fields->format));
    return command_end(export_file(operands[0], fields, moment, &info), &info, STATUS_OK);
}

const struct command command_export = {
    .name = "export",
    .summary = "convert a recording to the format of another tool",
    .synopsis = "--to FORMAT [options] FILE",
    .description =
        "Write the recording FILE in a format that another tool reads. The figures are\n"
        "those of cairn report with the same filters; but every leak counts, except in\n"
        "html and sarif, unless --suppressions is given. Output goes to standard output;\n"
        "if that is a terminal and the format is binary, it goes to a file in the current\n"
        "directory that is named after FILE.\n",
    .examples = "cairn export --html run.cairn -o run.html\n"
                "cairn export --to pprof -o run.pb.gz run.cairn\n"
                "cairn export --to folded run.cairn | flamegraph.pl > run.svg\n",
    .options = {.specs = specs,
                .count = ARRAY_LEN(specs),
                .shared = {FILTER_OPTIONS(export_fields, filter),
                           NAME_OPTIONS(export_fields, names)},
                .follows_operands = true},
    .fields_bytes = sizeof(struct export_fields),
    .defaults = &defaults,
    .run = run,
};
