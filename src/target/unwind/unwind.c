// SPDX-License-Identifier: MIT
// unwind: the process-wide part of unwind.h; the walks are in walk.c.
#include "target/unwind/unwind.h"

#include "target/unwind/environment/module_copy.h"
#include "target/unwind/environment/module_table.h"
#include "target/unwind/environment/rule_cache.h"
#include "target/unwind/environment/stack_bounds.h"

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

void unwind_modules_stay(void)
{
    if (!module_table_is_listed()) {
        module_table_refresh();
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

bool unwind_find_guessed_module(uint64_t pc, struct unwind_module *out)
{
    if (module_table_stays(pc)) {
        return unwind_find_module(pc, out);
    }
    struct module_span span;
    struct module_copy copy;
    if (!module_table_find_unread(pc, &span) || !module_copy_open(&span, &copy)) {
        return false;
    }
    struct bytes build_id;
    if (!module_copy_describe(&copy, &build_id)) {
        module_copy_close(&copy.table);
        return false;
    }
    *out = (struct unwind_module){.start = copy.span.start,
                                  .end = copy.span.end,
                                  .bias = copy.span.bias,
                                  .path = copy.span.path,
                                  .build_id = build_id,
                                  .copy = copy.table};
    return true;
}

void unwind_module_release(const struct unwind_module *module)
{
    module_copy_close(&module->copy);
}
