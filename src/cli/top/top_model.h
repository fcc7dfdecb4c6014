// SPDX-License-Identifier: MIT
// top_model: the state of `cairn top`, and what keys and new samples do to it.
//
//   sample --top_model_take--> rows: filtered and sorted --top_picture_draw, top_plain_write-->
//   key    --top_model_key-->  sort, filter, cursor, page; or an action for the caller
//
// The state changes in these two ways only, so it needs no terminal, no clock and no recorder. A
// row has the figures of a call site now, the change of its live bytes since the base, and its rate
// since the previous sample, or since the latest moment at which that was still right. The base is
// the first sample, and later the sample at the latest mark. The cursor follows its call site when
// an update changes the order, but stays on the first row if it is there. What the user asks to see
// in another way, by sorting or filtering, begins at the first row, on the page of the list. The
// page of stacks stays at its call site. Context: H; one thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "cli/top/top_row.h"
#include "host/containers/vec.h"
#include "host/text/strbuf.h"

// Keys that are not characters. All others are the character itself.
enum top_key {
    TOP_KEY_BACKSPACE = 8,
    TOP_KEY_ENTER = 10,
    TOP_KEY_ESCAPE = 27,
    TOP_KEY_UP = 0x110000, // above all characters
    TOP_KEY_DOWN,
    TOP_KEY_LEFT,
    TOP_KEY_RIGHT,
    TOP_KEY_PAGE_UP,
    TOP_KEY_PAGE_DOWN,
    TOP_KEY_HOME,
    TOP_KEY_END,
    TOP_KEY_F0, // F1 is TOP_KEY_F0 + 1
    TOP_KEY_LAST = TOP_KEY_F0 + 12,
};

enum top_action {
    TOP_NOTHING,
    TOP_QUIT,
    TOP_REFRESH, // take a new sample now
    TOP_PAUSE,   // is_paused has changed
    TOP_END_PROGRAM,
};

enum top_page {
    TOP_PAGE_LIST,
    TOP_PAGE_STACK,
    TOP_PAGE_HELP,
};

// What the recorder and the program do.
enum top_run_state {
    TOP_RUNS,
    TOP_STARTS,  // there is no sample yet
    TOP_ENDED,   // the program has ended, and the recording is complete
    TOP_STOPPED, // the recording is complete; the program runs on
    TOP_LOST,    // the recorder has died
};

struct top_model {
    struct top_sample *sample;    // owned; NULL before the first
    struct site_moment *previous; // owned reference; of the sample before
    uint64_t previous_ms;         // when it was still right
    struct site_moment *base;     // owned reference
    bool is_marked;               // the base is a mark of the user
    enum top_run_state state;
    char message[512]; // replaces the line of keys until the next key; "": none

    enum top_page page;
    enum top_column sort;
    bool is_inverted;
    bool is_typing; // the filter
    bool is_asking; // whether to end the program
    bool is_paused;
    struct strbuf filter;    // owned; "": everything passes
    struct top_row_vec rows; // owned; those that pass, in order
    double rate;             // of all sites
    double rate_error;
    size_t cursor; // in rows
    size_t first;  // the row at the top of the list
    size_t lines;  // of the list, set by the caller before each key; at least 1

    struct top_stack_line_vec stack; // owned; of the call site under the cursor
    size_t stack_first;              // the line at the top of the page
};

void top_model_release(struct top_model *model);

// Take a new sample. ERR_NO_MEMORY; the model is still valid then.
enum err top_model_take(struct top_model *model, struct top_sample *sample) MUST_USE;

// Note that nothing has happened since the sample until this moment. ERR_NO_MEMORY.
enum err top_model_rest(struct top_model *model, uint64_t now_ms) MUST_USE;

// Handle a key. `lines` of the model must be set. ERR_NO_MEMORY.
enum err top_model_key(struct top_model *model, uint32_t key, enum top_action *action) MUST_USE;

// Restrict the rows to names that contain `text`, compared without case. ERR_NO_MEMORY.
enum err top_model_filter(struct top_model *model, const char *text) MUST_USE;

// Move the list so that it shows the cursor, and no empty lines below the last row.
void top_model_show_cursor(struct top_model *model);

// The call site under the cursor, NULL if there are no rows.
const struct top_row *top_model_row(const struct top_model *model);
