// SPDX-License-Identifier: MIT
#include "cli/diff/comparison.h"

#include <string.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "cli/warnings/warnings.h"
#include "host/text/format.h"
#include "host/text/number.h"
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

enum {
    PART_MAX_BYTES = 4096
};

// A mark's text, which is not terminated, and which of the marks with it is meant.
struct mark_name {
    struct bytes text;
    uint64_t number; // from 1
    bool has_number;
};

// Split "text#2".
static struct mark_name mark_name_of(const char *text, size_t length)
{
    struct mark_name name = {.text = {(const uint8_t *)text, length}, .number = 1};
    char digits[8] = "";
    size_t at = length;
    while (at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9') {
        at--;
    }
    const size_t count = length - at;
    if (at > 1 && text[at - 1] == '#' && count > 0 && count < sizeof(digits)) {
        memcpy(digits, text + at, count);
        name.has_number = number_parse(digits, UINT32_MAX, &name.number) && name.number > 0;
        name.text.len = name.has_number ? at - 1 : length;
    }
    return name;
}

// Find the marks of a name. Return their number, and the time of the wanted one.
static uint64_t
find_marks(const struct profile *profile, const struct mark_name *name, uint64_t *out_ms)
{
    uint64_t count = 0;
    const struct recording *recording = &profile->recording;
    for (size_t i = 0; i < recording->mark_count; i++) {
        const struct rec_mark *mark = &recording->marks[i];
        const char *text = profile_string(profile, mark->text);
        if (strlen(text) == name->text.len && name->text.len > 0 &&
            memcmp(text, name->text.data, name->text.len) == 0) {
            count++;
            *out_ms = count == name->number ? mark->time_ms : *out_ms;
        }
    }
    return count;
}

// Set *out_ms to the time of a mark or of a duration.
static MUST_USE enum err find_moment(const char *text,
                                     size_t length,
                                     const struct profile *profile,
                                     uint64_t *out_ms,
                                     struct err_info *info)
{
    struct mark_name name = {.text = {(const uint8_t *)text, length}, .number = 1};
    uint64_t count = find_marks(profile, &name, out_ms);
    if (count == 0) {
        name = mark_name_of(text, length);
        count = name.has_number ? find_marks(profile, &name, out_ms) : 0;
    }
    char duration[32] = "";
    if (count == 0 && length < sizeof(duration)) {
        memcpy(duration, text, length);
        if (duration_parse(duration, out_ms)) {
            return ERR_OK;
        }
    }
    if (count == 0) {
        return err_set(info, ERR_NOT_FOUND,
                       "--between: '%.*s' is neither a mark of the recording nor a time such as "
                       "2.5s or 1m",
                       (int)length, text);
    }
    if (name.number > count || (!name.has_number && count > 1)) {
        return err_set(info, ERR_INVALID,
                       "--between: the recording has %s '%.*s'; write %.*s#1 for the first of them",
                       format_things(count, "mark", "marks").text, (int)name.text.len, text,
                       (int)name.text.len, text);
    }
    return ERR_OK;
}

// Restrict `words` to the part of the recording that was typed.
static MUST_USE enum err between_apply(const char *part,
                                       const struct profile *profile,
                                       struct filter_words *words,
                                       struct err_info *info)
{
    struct value_range range = {.high = UINT64_MAX, .is_set = true};
    const size_t length = strnlen(part, PART_MAX_BYTES);
    const char *dots = strstr(part, "..");
    const char *end = dots != NULL ? dots + 2 : part;
    if (dots > part) {
        TRY(find_moment(part, (size_t)(dots - part), profile, &range.low, info));
    }
    if (*end != '\0' || dots == NULL) {
        TRY(find_moment(end, (size_t)(part + length - end), profile, &range.high, info));
    }
    if (range.low >= range.high) {
        return err_set(info, ERR_INVALID, "--between: '%.100s' ends before it starts", part);
    }
    words->time = range;
    return ERR_OK;
}

bool between_is_of_moments(const struct between *between)
{
    return between->parts[SIDE_OLD] != NULL && strstr(between->parts[SIDE_OLD], "..") == NULL &&
           strstr(between->parts[SIDE_NEW], "..") == NULL;
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

static MUST_USE enum err compare_profiles(struct comparison *comparison,
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
    return compare_profiles(comparison, words, &whole, per, info);
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
    return compare_profiles(comparison, words, between, per, info);
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
