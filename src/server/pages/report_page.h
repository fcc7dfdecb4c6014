// SPDX-License-Identifier: MIT
// report_page: a recording and its viewer in one HTML file that needs no server.
//
//   for each question of a table --answer--> JSON --gzip, base64--> <script data-answer="...">
//   viewer's script and style -----------------------------------> <script>, <style>
//
// The page holds the answers that the server would give, unfiltered and for single processes and
// threads, and looks them up instead of asking. So its numbers are those of src/profile; what is
// not among the answers, the page says, it cannot show. The answers are compressed and spelled in
// an alphabet without any character of HTML, so nothing that a recording holds is ever read as
// markup; the policy in the page's head lets run the viewer's script by its hash, and nothing else,
// and forbids every connection. Size is bounded: tables and trees are cut harder until it fits.
// Equal recordings give equal files.
// Context: H.
#pragma once

#include <stdio.h>

#include "base/err.h"
#include "profile/model/profile.h"
#include "profile/select/filter.h"

// All borrowed.
struct report_page {
    const char *path; // of the recording, as shown
    const struct profile *profile;
    const struct filter *filter; // holds for every answer; NULL: none
    const char *filter_text;     // the same in words, "" for none
    const char *tool_version;
};

enum {
    REPORT_PAGE_MAX_MIB = 32 // of the whole file, but for the viewer's own quarter of a MiB
};

// ERR_LIMIT: the recording's names alone are too large;
// ERR_NO_MEMORY. A stream that cannot be written to keeps its error.
enum err report_page_write(const struct report_page *page, FILE *out) MUST_USE;
