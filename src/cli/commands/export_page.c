// SPDX-License-Identifier: MIT
#include "cli/commands/export_page.h"

#include "cli/options/filter_options.h"
#include "host/text/strbuf.h"
#include "server/pages/report_page.h"

enum {
    WORDS_COLUMNS = 200 // of the page, not of a terminal
};

// Append a description of the filter.
static MUST_USE enum err tell_filter(const struct export_view *view, struct strbuf *out)
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
    TRY(tell_filter(view, &filter_text));
    const struct report_page page = {.path = view->path,
                                     .profile = view->profile,
                                     .filter = view->filter,
                                     .filter_text = strbuf_text(&filter_text),
                                     .tool_version = CAIRN_VERSION};
    return report_page_write(&page, out);
}

const struct exporter exporter_html = {
    .name = "html",
    .file_suffix = ".html",
    .help = "any browser, without a server: the pages of cairn analyze in one file",
    .is_binary = true,
    .uses = EXPORT_USES_SERIES,
    .write = write_html,
};
