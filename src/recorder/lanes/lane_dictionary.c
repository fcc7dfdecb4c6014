// SPDX-License-Identifier: MIT
#include "recorder/lanes/lane_dictionary.h"

#include "base/hash.h"
#include "symbols/runtimes/runtime_table.h"

void lane_dictionary_release(struct lane_dictionary *dictionary)
{
    lane_module_slot_vec_release(&dictionary->modules);
    u32_vec_release(&dictionary->nodes);
    u32_vec_release(&dictionary->numbers);
}

enum err lane_dictionary_set_number(struct lane_dictionary *dictionary,
                                    uint32_t slot,
                                    uint32_t number,
                                    uint32_t *before)
{
    struct u32_vec *numbers = &dictionary->numbers;
    if (numbers->len <= slot) {
        TRY(u32_vec_resize(numbers, (size_t)slot + 1));
    }
    *before = numbers->items[slot];
    numbers->items[slot] = number;
    return ERR_OK;
}

// A frame as the wire packs it.
struct wire_frame {
    uint64_t pc;     // for symbolizing
    uint64_t offset; // for the stack table
    uint32_t module; // or REC_NONE
    uint32_t flags;  // enum rec_frame_flags
};

static enum err
frame_of(const struct lane_dictionary *dictionary, uint64_t word, struct wire_frame *out)
{
    uint64_t offset = word & WIRE_OFFSET_MASK;
    size_t slot = word >> WIRE_OFFSET_BITS;
    if (slot == 0) {
        *out = (struct wire_frame){.pc = offset, .offset = offset, .module = REC_NONE};
        return ERR_OK;
    }
    if (word == WIRE_FRAME_CUT) {
        *out = (struct wire_frame){.pc = word, .module = REC_NONE, .flags = REC_FRAME_CUT};
        return ERR_OK;
    }
    if (slot >= dictionary->modules.len || !dictionary->modules.items[slot].is_defined) {
        return ERR_CORRUPT;
    }
    const struct lane_module_slot *module = dictionary->modules.items + slot;
    *out = (struct wire_frame){
        .pc = module->bias + offset, .offset = offset, .module = module->module};
    return ERR_OK;
}

// A frame of a STACK record and the node that it leads to.
struct wire_step {
    struct wire_frame frame;
    uint64_t name;  // of the node
    uint32_t known; // the node that had this name in this process at the latest lookup, or REC_NONE
};

// Get the child of `parent` by a step. The known node may be outdated (code was unloaded, and other
// code has its address now).
static enum err child_node(struct aggregator *aggregator,
                           struct map_u64 *names,
                           uint32_t parent,
                           const struct wire_step *step,
                           uint32_t *out_node)
{
    const struct wire_frame *frame = &step->frame;
    if (step->known != REC_NONE && stack_table_is_child(&aggregator->stacks, step->known, parent,
                                                        frame->module, frame->offset)) {
        *out_node = step->known;
        return ERR_OK;
    }
    uint32_t frame_id = 0;
    uint32_t node = 0;
    TRY(stack_table_frame(&aggregator->stacks, frame->module, frame->offset, frame->flags,
                          &frame_id));
    TRY(stack_table_node(&aggregator->stacks, parent, frame_id, &node));
    TRY(map_u64_put(names, step->name, node));
    *out_node = node;
    return ERR_OK;
}

static enum err define_slot(struct lane_dictionary *dictionary, uint32_t slot, uint32_t node)
{
    if (slot >= LANE_DICTIONARY_SLOTS_MAX) {
        return ERR_CORRUPT;
    }
    while (dictionary->nodes.len <= slot) {
        TRY(u32_vec_push(&dictionary->nodes, REC_NONE));
    }
    dictionary->nodes.items[slot] = node;
    return ERR_OK;
}

// Read the steps of a STACK record. With many stacks each lookup of a name and of a node waits for
// memory; the lookups are independent, so they wait together.
static enum err read_steps(const struct lane_dictionary *dictionary,
                           struct aggregator_process *process,
                           struct aggregator *aggregator,
                           const uint64_t *words,
                           struct wire_step steps[static WIRE_STACK_FRAMES_MAX])
{
    struct map_u64 *names = &process->nodes_by_name;
    const uint32_t count = wire_stack_count(words);
    uint64_t name = words[1];
    for (uint32_t i = 0; i < count; i++) {
        struct wire_frame *frame = &steps[i].frame;
        TRY(frame_of(dictionary, words[2 + i], frame));
        if (UNLIKELY(frame->module == REC_NONE && (frame->flags & REC_FRAME_CUT) == 0)) {
            TRY(aggregator_jit_module(aggregator, process, &frame->module));
        }
        name = stack_name(name, steps[i].frame.pc);
        steps[i].name = name;
        map_u64_prefetch(names, name);
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t *known = map_u64_find(names, steps[i].name);
        steps[i].known = known != NULL ? *known : REC_NONE;
        if (known != NULL) {
            __builtin_prefetch(aggregator->stacks.nodes.items + *known);
        }
    }
    return ERR_OK;
}

// Find the child of `node` by `step`, if it exists already.
static enum err known_child(struct aggregator *aggregator,
                            struct map_u64 *names,
                            uint32_t node,
                            const struct wire_step *step,
                            uint32_t *out_node)
{
    const struct wire_frame *frame = &step->frame;
    *out_node = stack_table_find_child(&aggregator->stacks, node, frame->module, frame->offset,
                                       frame->flags);
    const bool is_named = *out_node == REC_NONE || step->known == *out_node;
    return is_named || aggregator_is_full(aggregator) ? ERR_OK
                                                      : map_u64_put(names, step->name, *out_node);
}

// Get the node of a new merged stack: its known outermost frames, up to `node`, and the innermost
// one, `last`, if that may be added.
static enum err merged_node(struct aggregator *aggregator,
                            uint32_t node,
                            const struct wire_frame *last,
                            uint32_t *out_node)
{
    struct stack_table *stacks = &aggregator->stacks;
    uint32_t frame = 0;
    aggregator->budget.merged_stacks++;
    TRY(stack_table_merged(stacks, node, REC_NONE, &node));
    *out_node = stack_table_find_child(stacks, node, last->module, last->offset, last->flags);
    if (*out_node != REC_NONE) {
        return ERR_OK;
    }
    *out_node = node;
    if (aggregator_is_full(aggregator) && !memory_budget_adds(&aggregator->budget)) {
        return ERR_OK;
    }
    TRY(stack_table_frame(stacks, last->module, last->offset, last->flags, &frame));
    return stack_table_merged(stacks, node, frame, out_node);
}

// Get the node of a stack while no stack is added (memory_budget.h), or of one whose outer frames
// were merged after it was sent. Its known nodes have names.
static NOINLINE enum err merge_stack(struct lane_dictionary *dictionary,
                                     struct aggregator_process *process,
                                     struct aggregator *aggregator,
                                     const struct wire_record *record,
                                     const struct wire_step *steps)
{
    struct map_u64 *names = &process->nodes_by_name;
    const uint64_t *words = record->payload - 1;
    const uint32_t count = wire_stack_count(words);
    const uint32_t *base = words[1] != 0 ? map_u64_find(names, words[1]) : NULL;
    uint32_t node = base != NULL ? *base : 0;
    bool is_known = base != NULL || words[1] == 0;
    for (uint32_t i = 0; i < count && is_known; i++) {
        uint32_t child = REC_NONE;
        TRY(known_child(aggregator, names, node, &steps[i], &child));
        is_known = child != REC_NONE;
        node = is_known ? child : node;
    }
    if ((wire_stack_flags(words) & WIRE_STACK_HAS_SLOT) == 0) {
        return ERR_OK;
    }
    if (!is_known && count > 0) {
        TRY(merged_node(aggregator, node, &steps[count - 1].frame, &node));
    } else if (!is_known) {
        TRY(stack_table_merged(&aggregator->stacks, 0, REC_NONE, &node));
    }
    return define_slot(dictionary, record->slot, node);
}

enum err lane_dictionary_add_stack(struct lane_dictionary *dictionary,
                                   struct aggregator_process *process,
                                   struct aggregator *aggregator,
                                   const struct wire_record *record)
{
    struct map_u64 *names = &process->nodes_by_name;
    const uint64_t *words = record->payload - 1;
    struct wire_step steps[WIRE_STACK_FRAMES_MAX];
    uint32_t node = 0;
    TRY(read_steps(dictionary, process, aggregator, words, steps));
    const uint32_t *base = words[1] != 0 ? map_u64_find(names, words[1]) : &node;
    if (UNLIKELY(aggregator_is_full(aggregator) ||
                 (base == NULL && aggregator->budget.entries_max != 0))) {
        return merge_stack(dictionary, process, aggregator, record, steps);
    }
    if (base == NULL) {
        return ERR_CORRUPT;
    }
    node = *base;
    for (uint32_t i = 0; i < wire_stack_count(words); i++) {
        TRY(child_node(aggregator, names, node, &steps[i], &node));
    }
    if ((wire_stack_flags(words) & WIRE_STACK_HAS_SLOT) == 0) {
        return ERR_OK;
    }
    return define_slot(dictionary, record->slot, node);
}

// Get the module in the table. The dynamic linker has no name for the program itself, and the
// process may not have sent its path: a constructor of a library can call the program before.
static enum err module_id(struct aggregator_process *process,
                          struct aggregator *aggregator,
                          const struct wire_module *module,
                          uint32_t *out)
{
    struct stack_table *stacks = &aggregator->stacks;
    const bool is_program = (module->flags & WIRE_MODULE_MAIN) != 0;
    const rec_string executable = process->record.executable;
    if (is_program && module->path.len == 0 && executable == 0) {
        TRY(stack_table_unnamed_executable(stacks, module->build_id, out));
        process->unnamed_module = *out + 1;
        return ERR_OK;
    }
    CLEANUP(strbuf_release) struct strbuf program = {0};
    struct bytes path = module->path;
    if (is_program && path.len == 0) {
        strbuf_append_text(&program, string_table_get(&aggregator->strings, executable));
        TRY(strbuf_result(&program));
        path = strbuf_bytes(&program);
    }
    TRY(stack_table_module(stacks, path, module->build_id, out));
    stacks->modules.items[*out].is_executable |= is_program;
    return ERR_OK;
}

// Note the runtime of a process that the name of a library tells.
static enum err
note_runtime(struct aggregator_process *process, struct aggregator *aggregator, struct bytes path)
{
    const struct runtime *runtime =
        process->record.runtime == 0 ? runtime_table_of_library(path) : NULL;
    return runtime == NULL ? ERR_OK
                           : string_table_intern_text(&aggregator->strings, runtime->key,
                                                      &process->record.runtime);
}

enum err lane_dictionary_add_module(struct lane_dictionary *dictionary,
                                    struct aggregator_process *process,
                                    struct aggregator *aggregator,
                                    const struct wire_record *record)
{
    const struct wire_module module = wire_module_of(record);
    if ((module.flags & WIRE_MODULE_RESET) != 0) {
        lane_module_slot_vec_clear(&dictionary->modules);
        u32_vec_clear(&dictionary->nodes);
    }
    if (module.slot == 0) {
        return ERR_OK; // a reset alone
    }
    uint32_t id = 0;
    TRY(module_id(process, aggregator, &module, &id));
    TRY(note_runtime(process, aggregator, module.path));
    if (module.slot >= dictionary->modules.len) {
        TRY(lane_module_slot_vec_resize(&dictionary->modules, (size_t)module.slot + 1));
    }
    dictionary->modules.items[module.slot] =
        (struct lane_module_slot){.bias = module.bias, .module = id, .is_defined = true};
    return ERR_OK;
}
