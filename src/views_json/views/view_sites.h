// SPDX-License-Identifier: MIT
// view_sites: a table of call sites within another view. Context: H.
#pragma once

#include "views_json/views/views.h"

// Write the sites in options->sites with the most of view->sort under `key`. In columns, their
// stacks are a second table.
enum err view_site_list(struct view *view,
                        const char *key,
                        const struct call_sites_options *options) MUST_USE;
