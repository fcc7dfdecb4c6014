// SPDX-License-Identifier: MIT
#include "target/preload/stacks/module_dictionary.h"

#include "base/search.h"
#include "session/wire.h"
#include "target/preload/python/python_code.h"
#include "target/preload/stacks/name_frames.h"
#include "target/unwind/unwind.h"

void module_dictionary_reset(struct module_dictionary *d)
{
    d->count = 0;
    d->last = 0;
    d->reset_pending = true;
}

// Return the index of the first entry that ends behind `at`.
static uint32_t lower_bound(const struct module_dictionary *d, uint64_t at)
{
    return (uint32_t)FIRST_WHERE(i, d->count, d->entries[i].end > at);
}

// Find the entry of a pc. A return address may be the first byte behind a module, when a call that
// never returns ends it: like the unwinder, check the byte before.
static const struct module_entry *find(struct module_dictionary *d, uint64_t pc)
{
    const uint64_t at = pc - 1;
    if (d->last >= d->count || at < d->entries[d->last].start || at >= d->entries[d->last].end) {
        const uint32_t index = lower_bound(d, at);
        if (index == d->count || at < d->entries[index].start) {
            return NULL;
        }
        d->last = index;
    }
    return &d->entries[d->last];
}

static size_t string_length(const char *text)
{
    size_t length = 0;
    while (text[length] != '\0') {
        length++;
    }
    return length;
}

static enum err
send(struct module_dictionary *d, struct lane_producer *p, const struct unwind_module *module)
{
    const uint32_t is_main = module->path[0] == '\0' ? WIRE_MODULE_MAIN : 0;
    const uint32_t reset = d->reset_pending ? WIRE_MODULE_RESET : 0;
    TRY(lane_producer_send_module(
        p, &(struct lane_module){
               .slot = d->count + 1,
               .flags = is_main | reset,
               .bias = module->bias,
               .start = module->start,
               .end = module->end,
               .build_id = module->build_id,
               .path = {.data = (const uint8_t *)module->path, .len = string_length(module->path)},
           }));
    d->reset_pending = false;
    return ERR_OK;
}

enum err module_dictionary_introduce(struct module_dictionary *d,
                                     struct lane_producer *p,
                                     uint64_t pc,
                                     bool is_guess)
{
    if (pc == WIRE_FRAME_CUT || find(d, pc) != NULL) {
        return ERR_OK;
    }
    struct unwind_module module;
    if (!(is_guess ? unwind_find_guessed_module : unwind_find_module)(pc - 1, &module) &&
        !name_frame_module(pc, &module) && !python_code_module(pc, &module)) {
        return ERR_OK;
    }
    const enum err result = d->count < MODULE_DICTIONARY_MAX ? send(d, p, &module) : ERR_LIMIT;
    unwind_module_release(&module);
    TRY(result);
    if (d->count == MODULE_DICTIONARY_MIN && d->entries != d->grown) {
        __builtin_memcpy(d->grown, d->entries, d->count * sizeof(d->entries[0]));
        d->entries = d->grown;
    }
    const uint32_t index = lower_bound(d, module.start);
    for (uint32_t i = d->count; i > index; i--) {
        d->entries[i] = d->entries[i - 1];
    }
    d->count++;
    d->entries[index] = (struct module_entry){
        .start = module.start, .end = module.end, .bias = module.bias, .slot = d->count};
    d->last = index;
    return ERR_OK;
}

uint64_t module_dictionary_frame(struct module_dictionary *d, uint64_t pc)
{
    if (pc == WIRE_FRAME_CUT) {
        return WIRE_FRAME_CUT;
    }
    const struct module_entry *entry = find(d, pc);
    if (entry == NULL) {
        return pc & WIRE_OFFSET_MASK;
    }
    return entry->slot << WIRE_OFFSET_BITS | ((pc - entry->bias) & WIRE_OFFSET_MASK);
}
