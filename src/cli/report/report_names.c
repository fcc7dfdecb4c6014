// SPDX-License-Identifier: MIT
// report_names: the section on modules with missing names, and how to get the names.
//
// The profile has general advice. For files of the system this section replaces it by advice for
// this machine: the package name, if the package is available here, and the distribution's
// debuginfod server. See report_lines.h. Context: H.
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "base/order.h"
#include "cli/report/package_owner.h"
#include "cli/report/report_lines.h"
#include "cli/text/screen_text.h"
#include "host/os/file.h"
#include "host/text/format.h"
#include "profile/accuracy/coverage.h"
#include "symbols/elf/debuginfod.h"

enum {
    ADVICE_LINES = 5,
    WRAPPED_INDENT = 4,
    CONFIGURATION_BYTES_MAX = 1 << 20,
};

struct module_gap {
    uint32_t module;
    uint64_t missing; // frames without a line
};

DEFINE_VEC(module_gap_vec, struct module_gap);

static int compare_gaps(const void *left, const void *right)
{
    uint64_t left_missing = ((const struct module_gap *)left)->missing;
    uint64_t right_missing = ((const struct module_gap *)right)->missing;
    return order_u64(right_missing, left_missing);
}

// Return whether a line of the file, except comments, has one of the words.
static bool file_mentions(const char *path, const char *const *words, size_t count)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    if (file_read(path, CONFIGURATION_BYTES_MAX, &text, NULL) != ERR_OK) {
        return false;
    }
    char *rest = text.data;
    for (char *line = NULL; rest != NULL && (line = strsep(&rest, "\n")) != NULL;) {
        for (size_t i = 0; i < count && line[0] != '#'; i++) {
            if (strstr(line, words[i]) != NULL) {
                return true;
            }
        }
    }
    return false;
}

// Return whether apt has an archive of debug symbols: Debian and Ubuntu keep them in a separate
// archive.
static bool apt_has_debug_archive(void)
{
    static const char *const words[] = {"debian-debug", "ddebs"};
    static const char folder[] = "/etc/apt/sources.list.d";
    bool has = file_mentions("/etc/apt/sources.list", words, ARRAY_LEN(words));
    CLEANUP(directory_closep) DIR *entries = opendir(folder);
    const struct dirent *entry;
    while (!has && entries != NULL && (entry = readdir(entries)) != NULL) {
        char path[512];
        if (entry->d_name[0] != '.' &&
            snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) < (int)sizeof(path)) {
            has = file_mentions(path, words, ARRAY_LEN(words));
        }
    }
    return has;
}

static void append_servers(const struct package_owner *owner, struct strbuf *out)
{
    const char *library =
        owner->system == PACKAGE_RPM ? "elfutils-debuginfod-client" : "libdebuginfod1";
    const char *sep = "";
    if (!debuginfod_is_installed()) {
        strbuf_printf(out, "install %s", library);
        sep = " and ";
    }
    if (!debuginfod_is_wanted()) {
        strbuf_printf(out, "%sset DEBUGINFOD_URLS to your distribution's debuginfod server", sep);
    }
}

static void append_package(const struct package_owner *owner, struct strbuf *out)
{
    const char *sep = out->len > 0 ? ", or " : "";
    if (owner->system == PACKAGE_RPM) {
        strbuf_printf(out, "%s'dnf debuginfo-install %s'", sep, owner->name);
    } else if (strcmp(owner->name, "libc6") == 0) {
        strbuf_printf(out, "%s'apt install libc6-dbg'", sep); // in the main archive
    } else if (apt_has_debug_archive()) {
        strbuf_printf(out, "%s'apt install %s-dbgsym'", sep, owner->name);
    } else {
        strbuf_printf(out, "%sinstall %s-dbgsym from the archive of debug symbols", sep,
                      owner->name);
    }
}

static void print_module(const struct report *report,
                         FILE *out,
                         uint32_t module,
                         const struct module_coverage *coverage,
                         const struct package_owner *owner)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    CLEANUP(strbuf_release) struct strbuf line = {0};
    CLEANUP(strbuf_release) struct strbuf advice = {0};
    screen_append(&line, path_file_name(report_string(
                             report, &text, report->profile->recording.modules[module].path)));
    strbuf_printf(&line, ": %s of %s %s a name, ", format_count(coverage->with_function).text,
                  format_things(coverage->frames, "place", "places").text,
                  coverage->with_function == 1 ? "has" : "have");
    strbuf_printf(&line, "%s a line", format_count(coverage->with_line).text);
    strbuf_clear(&text);
    screen_append_cut(&text, strbuf_text(&line), report_width(report) - 2, SCREEN_CUT_MIDDLE);
    (void)fprintf(out, "  %s\n", strbuf_text(&text));
    if (owner->system != PACKAGE_NONE) {
        append_servers(owner, &advice);
        append_package(owner, &advice);
    } else {
        strbuf_append_text(&advice, profile_module_advice(report->profile, module));
    }
    strbuf_clear(&text);
    screen_append(&text, strbuf_text(&advice));
    screen_print_wrapped(out, strbuf_text(&text), WRAPPED_INDENT, report_width(report));
}

// Find the packages of the modules that lack only debug information.
static MUST_USE enum err find_owners(const struct profile *profile,
                                     const struct module_gap *gaps,
                                     size_t count,
                                     struct package_owner *owners)
{
    const char *paths[ADVICE_LINES];
    for (size_t i = 0; i < count; i++) {
        const uint32_t module = gaps[i].module;
        const enum symbol_gap gap = profile_module_gap(profile, module);
        const bool lacks_debug_info = gap == SYMBOL_GAP_STRIPPED || gap == SYMBOL_GAP_NO_DEBUG_INFO;
        paths[i] = lacks_debug_info
                       ? profile_string(profile, profile->recording.modules[module].path)
                       : "";
    }
    return package_owners_find(paths, count, owners);
}

static void list_gaps(const struct report *report,
                      const struct module_coverage_vec *coverage,
                      struct module_gap_vec *out)
{
    for (size_t i = 0; i < report->profile->recording.module_count; i++) {
        uint64_t missing = coverage->items[i].frames - coverage->items[i].with_line;
        if (missing > 0 && profile_module_advice(report->profile, (uint32_t)i)[0] != '\0') {
            module_gap_vec_add(out, (struct module_gap){.module = (uint32_t)i, .missing = missing});
        }
    }
    module_gap_vec_sort(out, compare_gaps);
}

// Print a line for each module that lacks names, if the user can do something about it.
enum err report_print_coverage(const struct report *report, FILE *out)
{
    CLEANUP(module_coverage_vec_release) struct module_coverage_vec coverage = {0};
    CLEANUP(module_gap_vec_release) struct module_gap_vec gaps = {0};
    struct package_owner owners[ADVICE_LINES];
    TRY(coverage_build(report->profile, &coverage));
    list_gaps(report, &coverage, &gaps);
    if (gaps.len == 0) {
        return ERR_OK;
    }
    const size_t count = min_u64(gaps.len, ADVICE_LINES);
    TRY(find_owners(report->profile, gaps.items, count, owners));
    (void)fprintf(out, "\n%sNAMES: where they are missing, and how to get them%s\n",
                  report_paint(report, PAINT_TITLE), report_unpaint(report));
    bool is_later = false;
    for (size_t i = 0; i < count; i++) {
        const uint32_t module = gaps.items[i].module;
        print_module(report, out, module, &coverage.items[module], &owners[i]);
        is_later = is_later || report->profile->recording.modules[module].build_id != 0;
    }
    if (is_later) {
        screen_print_wrapped(out,
                             "then run 'cairn report' again, or 'cairn symbolize' to write them "
                             "into the file: no new recording is needed",
                             2, report_width(report));
    }
    return ERR_OK;
}
