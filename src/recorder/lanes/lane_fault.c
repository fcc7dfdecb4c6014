// SPDX-License-Identifier: MIT
#include "recorder/lanes/lane_fault.h"

#include <inttypes.h>

#include "aggregate/aggregator_process.h"
#include "base/minmax.h"
#include "recorder/lanes/lane_dictionary.h"
#include "recorder/session/lane_consumer.h"

static const char *rule_of_row(const struct wire_record *record,
                               const struct lane_dictionary *dictionary,
                               const struct aggregator_process *process)
{
    const uint32_t number = record->count;
    const struct u32_vec *nodes = &process->book_nodes;
    if (lane_dictionary_node(dictionary, record->slot) == REC_NONE) {
        return "the slot of the row has no stack";
    }
    if (number == 0) {
        return "the row has no number";
    }
    return number < nodes->len && nodes->items[number] != REC_NONE
               ? "the row's number is in use"
               : "the row's number is beyond all others, or of a range of another level";
}

const char *lane_fault_rule(const struct wire_record *record,
                            const struct lane_dictionary *dictionary,
                            const struct aggregator_process *process)
{
    struct book_entry entry;
    switch (record->tag) {
    case WIRE_ROW:
        return rule_of_row(record, dictionary, process);
    case WIRE_BOOK:
        return book_record_read(record->payload - 1, &entry)
                   ? "too many entries wait for what they free"
                   : "the entry of a book is malformed";
    case WIRE_STACK:
        return "the stack has a module, a base or a slot that is not known";
    case WIRE_MODULE:
    case WIRE_TEXT:
        return "a module or text is malformed";
    case WIRE_BLOCK_BORN:
    case WIRE_BLOCK_FREED:
        return "no single blocks were asked for";
    case WIRE_MAPPING:
    case WIRE_EVENT:
    case WIRE_GREW:
        return "the slot of the event has no stack";
    case WIRE_QUERY:
    case WIRE_PAD:
    case WIRE_TICK:
        break;
    }
    return "the record was refused";
}

void lane_fault_note(struct lane_fault *fault,
                     const char *rule,
                     const uint64_t *words,
                     size_t count)
{
    fault->rule = rule;
    fault->count = (uint32_t)min_u64(count, LANE_FAULT_WORDS);
    for (uint32_t i = 0; i < fault->count; i++) {
        fault->words[i] = words[i];
    }
}

void lane_fault_text(struct strbuf *text, const struct lane_fault *fault)
{
    strbuf_append_text(text, fault->rule);
    if (fault->count > 0) {
        strbuf_printf(text, "; %s byte %" PRIu64 ":",
                      fault->is_of_book ? "from the book, beside" : "before", fault->pos);
    }
    for (uint32_t i = 0; i < fault->count; i++) {
        strbuf_printf(text, " %016" PRIx64, fault->words[i]);
    }
}
