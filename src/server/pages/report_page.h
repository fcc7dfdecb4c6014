// SPDX-License-Identifier: MIT
// report_page: writes a recording and its viewer as one HTML file that needs no server.
//
//   for each query of a table --answer--> JSON --gzip, base64--> <script data-answer="...">
//   viewer's script and style -----------------------------------> <script>, <style>
//
// The page contains the server's answers, unfiltered and for single processes and threads, and the
// viewer looks them up instead of sending requests. So its numbers come from src/profile. For all
// other queries the page says that it has no answer.
// The answers are compressed and in base64, which has no special characters of HTML, so recorded
// texts are never read as markup. The policy in the page's head allows only the viewer's script, by
// its hash, and forbids every connection.
// The size is bounded: tables and trees are reduced until the page fits. Equal recordings give
// equal files.
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
    const struct filter *filter; // applies to every answer; NULL: none
    const char *filter_text;     // the filter in words, "" without one
    const char *tool_version;
};

enum {
    REPORT_PAGE_MAX_MIB = 32 // of the file, not counting the viewer's own quarter of a MiB
};

// Write the page. ERR_LIMIT: the recording's names alone are too large. ERR_NO_MEMORY. Write errors
// stay in the stream.
enum err report_page_write(const struct report_page *page, FILE *out) MUST_USE;
