// SPDX-License-Identifier: MIT
#include "cli/diff/comparison.h"

#include <string.h>

#include "base/compiler.h"
#include "cli/warnings/warnings.h"
#include "host/text/format.h"
#include "profile/compare/renames.h"

bool per_parse(const char *text, struct per *out)
{
    enum {
        NUMBER_MAX_LEN = 31
    };
    struct per per = {.is_set = true, .units = {.sides = {1, 1}}};
    if (strcmp(text, "second") == 0) {
        per.is_second = true;
        *out = per;
        return true;
    }
    char old[NUMBER_MAX_LEN + 1];
    size_t old_len = strcspn(text, ":");
    uint64_t counts[SIDE_COUNT];
    if (old_len > NUMBER_MAX_LEN) {
        return false;
    }
    memcpy(old, text, old_len);
    old[old_len] = '\0';
    per.has_both = text[old_len] == ':';
    if (!count_parse(old, &counts[SIDE_OLD]) ||
        !count_parse(per.has_both ? text + old_len + 1 : old, &counts[SIDE_NEW]) ||
        counts[SIDE_OLD] == 0 || counts[SIDE_NEW] == 0) {
        return false;
    }
    per.units.sides[SIDE_OLD] = (double)counts[SIDE_OLD];
    per.units.sides[SIDE_NEW] = (double)counts[SIDE_NEW];
    *out = per;
    return true;
}

void per_append(const struct per *per, struct strbuf *out)
{
    if (per->is_second) {
        strbuf_append_text(out, "the run time");
        return;
    }
    strbuf_printf(out, "%s", format_count((uint64_t)per->units.sides[SIDE_NEW]).text);
    if (per->has_both) {
        strbuf_printf(out, " (old: %s)", format_count((uint64_t)per->units.sides[SIDE_OLD]).text);
    }
}

// Check that the length of both runs is known.
static MUST_USE enum err check_run_lengths(struct profile *const *profiles, struct err_info *info)
{
    for (size_t side = 0; side < SIDE_COUNT; side++) {
        if ((profiles[side]->recording.meta.unknown & REC_UNKNOWN_TIME) != 0) {
            return err_set(info, ERR_UNSUPPORTED, "--per second: the %s recording has no run time",
                           side == SIDE_NEW ? "new" : "old");
        }
    }
    return ERR_OK;
}

static MUST_USE enum err compare(struct comparison *comparison,
                                 const struct filter_words *words,
                                 const struct between *between,
                                 const struct per *per,
                                 struct err_info *info)
{
    struct profile **profiles = comparison->profiles;
    for (size_t side = 0; side < SIDE_COUNT; side++) {
        struct applied_filter *applied = &comparison->filters[side];
        struct filter_words own = *words;
        TRY(between->parts[side] != NULL
                ? between_apply(between->parts[side], profiles[side], &own, info)
                : ERR_OK);
        TRY(filter_words_apply(&own, &profiles[side]->recording, applied, info));
        TRY(profile_select(profiles[side], &applied->filter, &comparison->selections[side], info));
    }
    filter_warn(&comparison->selections[SIDE_NEW], &comparison->selections[SIDE_OLD],
                &comparison->filters[SIDE_NEW].filter);
    TRY(per->is_second ? check_run_lengths(profiles, info) : ERR_OK);
    struct diff_units units = {.sides = {1, 1}};
    if (per->is_set) {
        units = per->is_second ? diff_run_lengths(&comparison->selections[SIDE_NEW],
                                                  &comparison->selections[SIDE_OLD])
                               : per->units;
    }
    TRY(code_union_build(profiles[SIDE_NEW], profiles[SIDE_OLD], &comparison->code));
    TRY(renames_find(&comparison->code));
    return diff_build(&comparison->code, &comparison->selections[SIDE_NEW],
                      &comparison->selections[SIDE_OLD], units, &comparison->diff);
}

enum err comparison_init(struct comparison *comparison,
                         struct profile *new,
                         const char *old_path,
                         const struct name_sources *sources,
                         const struct filter_words *words,
                         const struct per *per,
                         struct err_info *info)
{
    static const struct between whole = {0};
    *comparison = (struct comparison){.borrows_new = true};
    comparison->profiles[SIDE_NEW] = new;
    TRY(warnings_open_profile(old_path, sources, &comparison->profiles[SIDE_OLD], info));
    return compare(comparison, words, &whole, per, info);
}

enum err comparison_open(struct comparison *comparison,
                         const char *new_path,
                         const char *old_path,
                         const struct name_sources *sources,
                         const struct filter_words *words,
                         const struct per *per,
                         struct err_info *info)
{
    struct profile *new = NULL;
    TRY(warnings_open_profile(new_path, sources, &new, info));
    const enum err problem = comparison_init(comparison, new, old_path, sources, words, per, info);
    comparison->borrows_new = false;
    return problem;
}

enum err comparison_open_between(struct comparison *comparison,
                                 const char *path,
                                 const struct between *between,
                                 const struct name_sources *sources,
                                 const struct filter_words *words,
                                 const struct per *per,
                                 struct err_info *info)
{
    *comparison = (struct comparison){.has_one_profile = true};
    TRY(warnings_open_profile(path, sources, &comparison->profiles[SIDE_NEW], info));
    comparison->profiles[SIDE_OLD] = comparison->profiles[SIDE_NEW];
    return compare(comparison, words, between, per, info);
}

// The comparison owns the code union and the selections. It releases the profiles last, because the
// others borrow from them.
void comparison_release(struct comparison *comparison)
{
    diff_release(&comparison->diff);
    code_union_release(&comparison->code);
    for (size_t side = 0; side < SIDE_COUNT; side++) {
        selection_release(&comparison->selections[side]);
        applied_filter_release(&comparison->filters[side]);
        const bool is_owned =
            side == SIDE_NEW ? !comparison->borrows_new : !comparison->has_one_profile;
        if (is_owned) {
            profile_close(comparison->profiles[side]);
        }
    }
    *comparison = (struct comparison){0};
}
