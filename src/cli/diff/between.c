// SPDX-License-Identifier: MIT
#include "cli/diff/between.h"

#include <string.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "host/text/format.h"
#include "host/text/number.h"

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

enum err between_apply(const char *part,
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
