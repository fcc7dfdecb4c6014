// SPDX-License-Identifier: MIT
#include "cli/top/top_drawing.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/minmax.h"
#include "cli/text/screen_text.h"
#include "host/text/format.h"

enum {
    ERROR_COLUMNS = 5, // "±999%"; without UTF-8 one more
};

void top_drawing_release(struct top_drawing *d)
{
    strbuf_release(&d->line);
}

bool top_drawing_has_errors(const struct top_model *model)
{
    return model->sample->sampling.bytes != 0;
}

// Replace what is not ASCII. A plus-minus sign has two bytes.
static void make_ascii(char *text, size_t len)
{
    static const char sign[] = "\xc2\xb1";
    for (size_t i = 0; i < len; i++) {
        if (i + 1 < len && memcmp(text + i, sign, 2) == 0) {
            text[i++] = '+';
            text[i] = '-';
        } else if ((unsigned char)text[i] >= 0x80) {
            text[i] = '?';
        }
    }
}

enum err top_drawing_end_line(struct top_drawing *d, enum top_style style)
{
    struct strbuf *texts = &d->picture->texts;
    const struct top_line line = {.text = texts->len, .style = style};
    TRY(strbuf_result(&d->line));
    if (!d->size.is_utf8) {
        make_ascii(d->line.data, d->line.len);
    }
    screen_append_cut(texts, strbuf_text(&d->line), d->size.width, SCREEN_CUT_MIDDLE);
    strbuf_append_char(texts, '\0');
    strbuf_clear(&d->line);
    TRY(strbuf_result(texts));
    return d->picture->lines.len < d->size.height ? top_line_vec_push(&d->picture->lines, line)
                                                  : ERR_OK;
}

void top_drawing_blank_to(struct strbuf *line, size_t column, size_t least)
{
    const size_t used = screen_columns(strbuf_text(line));
    strbuf_printf(line, "%*s", (int)max_u64(column > used ? column - used : 0, least), "");
}

unsigned top_drawing_error_columns(const struct top_drawing *d)
{
    return top_drawing_has_errors(d->model) ? ERROR_COLUMNS + !d->size.is_utf8 + 1U : 0;
}

void top_append_change(struct strbuf *out, int64_t change_bytes)
{
    const bool is_less = change_bytes < 0;
    const uint64_t amount = is_less ? 0 - (uint64_t)change_bytes : (uint64_t)change_bytes;
    strbuf_printf(out, "%s%s", is_less ? "-" : amount > 0 ? "+" : "", format_bytes(amount).text);
}

bool top_append_bytes(struct strbuf *out, const struct top_row *row, enum top_column column)
{
    if (column == TOP_CHANGE) {
        top_append_change(out, row->change_bytes);
    } else if (column == TOP_LIVE || column == TOP_PEAK) {
        strbuf_append_text(out, format_bytes((uint64_t)top_row_value(row, column)).text);
    } else {
        return false;
    }
    return true;
}

void top_append_error(struct strbuf *out, double figure, double error)
{
    const double parts = 1000; // of a whole: rates may be below 1
    strbuf_append_text(
        out, sampling_format_error((uint64_t)(fabs(figure) * parts), (uint64_t)ceil(error * parts))
                 .text);
}

const char *top_state_words(const struct top_model *model)
{
    static const char *const words[] = {
        [TOP_RUNS] = "running",           [TOP_STARTS] = "starting",
        [TOP_ENDED] = "has ended",        [TOP_STOPPED] = "runs on, no longer recorded",
        [TOP_LOST] = "recorder has died",
    };
    return model->state == TOP_RUNS && model->is_paused ? "paused" : words[model->state];
}

struct human top_format_short(double count)
{
    static const char units[] = " kMGTPE";
    struct human human;
    size_t unit = 0;
    if (count < 9.95 && count - (double)(uint64_t)count >= 0.05) {
        (void)snprintf(human.text, sizeof(human.text), "%.1f", count); // fits
        return human;
    }
    if (count < 9999.5) {
        (void)snprintf(human.text, sizeof(human.text), "%.0f", count); // fits
        return human;
    }
    while (count >= 999.5 && units[unit + 1] != '\0') {
        count /= 1000;
        unit++;
    }
    (void)snprintf(human.text, sizeof(human.text), "%.*f%c",
                   count < 9.995   ? 2
                   : count < 99.95 ? 1
                                   : 0,
                   count, units[unit]); // fits
    return human;
}
