// SPDX-License-Identifier: MIT
// view_page: what an HTML report tells its page about the file itself.
#include "views_json/views/views.h"

void view_page(struct view *view, const struct page_view_options *options)
{
    json_key_string(view->w, "filter", options->filter);
    view_numbers(view, "processes", options->processes.items, options->processes.len);
    view_numbers(view, "threads", options->threads.items, options->threads.len);
    json_key_u64(view->w, "omitted", options->omitted);
    json_key_u64(view->w, "rows_max", options->rows_max);
    json_key_u64(view->w, "nodes_max", options->nodes_max);
}
