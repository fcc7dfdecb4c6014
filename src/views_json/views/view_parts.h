// SPDX-License-Identifier: MIT
// view_parts: fields and tables that several views share. Context: H.
#pragma once

#include "views_json/layout/view.h"
#include "views_json/layout/view_table.h"
#include "views_json/views/views.h"

// Fields of the whole run, named after the functions.
void view_damage(struct view *view);
void view_sampling(struct view *view);
void view_counters(struct view *view);
void view_unrecorded(struct view *view);
void view_hooks(struct view *view);
enum err view_unseen(struct view *view) MUST_USE;

// Write a wait status as a value; null if it is unknown.
void view_wait_status(struct view *view, int32_t status);

// Write an array of the keys of the costs whose bits are set.
void view_cost_keys(struct view *view, const char *key, uint64_t bits);

// Write the sites in options->sites with the most of view->sort under `key`. In columns, their
// stacks are a second table.
enum err view_site_list(struct view *view,
                        const char *key,
                        const struct call_sites_options *options) MUST_USE;
