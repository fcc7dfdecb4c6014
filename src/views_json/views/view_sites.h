// SPDX-License-Identifier: MIT
// view_sites: a table of call sites within another view. Context: H.
#pragma once

#include "views_json/views/views.h"

// The sites of options->sites with most of view->sort, under `key`. In columns, stacks come as a
// table beside it.
enum err view_site_list(struct view *view,
                        const char *key,
                        const struct call_sites_options *options) MUST_USE;
