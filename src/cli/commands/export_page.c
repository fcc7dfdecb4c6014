// SPDX-License-Identifier: MIT
// export_page: see export_page.h.
#include "cli/commands/export_page.h"

#include <stdlib.h>

#include "cli/options/filter_options.h"
#include "host/os/file.h"
#include "server/pages/report_page.h"

enum {
    WORDS_COLUMNS = 200 // of the page, not of a terminal
};

// Return a description of the filter, which the caller frees. Return NULL without memory.
static char *tell_filter(const struct export_view *view)
{
    CLEANUP(text_freep) char *text = NULL;
    size_t len = 0;
    FILE *stream = open_memstream(&text, &len);
    if (stream == NULL) {
        return NULL;
    }
    filter_print(&view->selection, view->filter, WORDS_COLUMNS, stream);
    if (fclose(stream) != 0) {
        return NULL;
    }
    char *text_of_size = text;
    text = NULL;
    return text_of_size;
}

static enum err write_html(const struct export_view *view, FILE *out)
{
    CLEANUP(text_freep) char *filter_text = tell_filter(view);
    if (filter_text == NULL) {
        return ERR_NO_MEMORY;
    }
    const struct report_page page = {.path = view->path,
                                     .profile = view->profile,
                                     .filter = view->filter,
                                     .filter_text = filter_text,
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
