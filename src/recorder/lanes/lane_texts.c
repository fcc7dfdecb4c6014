// SPDX-License-Identifier: MIT
#include "recorder/lanes/lane_texts.h"

void lane_texts_release(struct lane_texts *texts)
{
    for (size_t i = 0; i < LANE_TEXTS_KINDS; i++) {
        strbuf_release(&texts->parts[i]);
    }
}

static enum err
add_executable(struct aggregator_process *process, struct aggregator *aggregator, struct bytes path)
{
    TRY(string_table_intern_prefix(&aggregator->strings, path, &process->record.executable));
    if (process->unnamed_module != 0) {
        TRY(stack_table_name_module(&aggregator->stacks, process->unnamed_module - 1, path));
        process->unnamed_module = 0;
    }
    return ERR_OK;
}

// Take a complete text.
static enum err add_text(struct aggregator_thread *thread,
                         struct aggregator *aggregator,
                         uint32_t kind,
                         struct bytes text)
{
    struct rec_process *process = &thread->process->record;
    switch ((enum wire_text_kind)kind) {
    case WIRE_TEXT_EXECUTABLE:
        return add_executable(thread->process, aggregator, text);
    case WIRE_TEXT_COMMAND_LINE:
        return command_line_intern(&aggregator->strings, text, &process->command_line);
    case WIRE_TEXT_THREAD_NAME:
        return aggregator_thread_name(aggregator, thread, text);
    case WIRE_TEXT_ALLOCATOR:
        return string_table_intern_prefix(&aggregator->strings, text, &process->allocator);
    case WIRE_TEXT_LIBC:
        return string_table_intern_prefix(&aggregator->strings, text, &aggregator->libc);
    case WIRE_TEXT_MARK:
    case WIRE_TEXT_PHASE:
        return mark_list_add_of_program(&aggregator->marks, &aggregator->strings, thread->tick_ms,
                                        kind == WIRE_TEXT_MARK ? REC_MARK_USER : REC_MARK_PHASE,
                                        text);
    case WIRE_TEXT_WORKING_DIRECTORY:
        break; // the recording has no field for it
    }
    return ERR_OK; // unknown kinds belong to later versions
}

enum err lane_texts_add(struct lane_texts *texts,
                        struct aggregator_thread *thread,
                        struct aggregator *aggregator,
                        const struct wire_record *record)
{
    struct wire_text part = wire_text_of(record);
    if (part.kind >= LANE_TEXTS_KINDS) {
        return ERR_OK;
    }
    struct strbuf *whole = texts->parts + part.kind;
    if (whole->len < LANE_TEXTS_BYTES_MAX) {
        strbuf_append(whole, part.text.data, part.text.len);
    }
    if ((part.flags & WIRE_TEXT_MORE) != 0) {
        return strbuf_result(whole);
    }
    TRY(strbuf_result(whole));
    enum err err = add_text(thread, aggregator, part.kind, strbuf_bytes(whole));
    strbuf_release(whole);
    return err;
}
