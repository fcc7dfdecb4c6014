// SPDX-License-Identifier: MIT
// unwind: the process-wide part of unwind.h; the walks are in walk.c.
#include "unwind/unwind.h"

#include "unwind/module_table.h"
#include "unwind/rule_cache.h"
#include "unwind/stack_bounds.h"

void unwind_flush(void)
{
    rule_cache_flush();
}

void unwind_modules_refresh(void)
{
    stack_bounds_note_main_thread();
    if (module_table_needs_refresh()) {
        module_table_refresh();
    }
    if (rule_cache_has_unknown_code()) {
        rule_cache_flush();
    }
}

bool unwind_find_module(uint64_t pc, struct unwind_module *out)
{
    struct module_span span;
    if (!module_table_find(pc, &span)) {
        return false;
    }
    *out = (struct unwind_module){.start = span.start,
                                  .end = span.end,
                                  .bias = span.bias,
                                  .path = span.path,
                                  .build_id = module_table_build_id(&span)};
    return true;
}
