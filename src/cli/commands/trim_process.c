// SPDX-License-Identifier: MIT
#include "cli/commands/trim_process.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/minmax.h"
#include "host/text/format.h"
#include "host/text/json_writer.h"
#include "recorder/outside/process_trim.h"

static void print_text(int pid, const struct process_trim *o)
{
    const uint64_t gone = excess_u64(o->before_bytes, o->after_bytes);
    (void)printf("process %d: %s of resident memory before, %s after: %s went back\n", pid,
                 format_bytes(o->before_bytes).text, format_bytes(o->after_bytes).text,
                 format_bytes(gone).text);
    if (o->promised.is_known) {
        (void)printf("  promised: ~%s\n", format_bytes(o->promised.bytes).text);
    }
    for (size_t i = 0; i < o->trim.count; i++) {
        const struct trim_call *call = o->trim.calls + i;
        (void)printf("  %s of %s: thread %d was stopped for %s, and held for %s\n", call->function,
                     call->allocator, call->tid, format_duration(call->stopped_ns).text,
                     format_duration(call->held_ns).text);
    }
}

static enum err print_json(int pid, const struct process_trim *o)
{
    struct json_writer w;
    json_to_stream(&w, stdout, JSON_COMPACT);
    json_key_u64(&w, "pid", (uint64_t)pid);
    json_key_u64(&w, "rss_before_bytes", o->before_bytes);
    json_key_u64(&w, "rss_after_bytes", o->after_bytes);
    json_key_known_u64(&w, "promised_bytes", o->promised.bytes, o->promised.is_known);
    json_key_array(&w, "calls");
    for (size_t i = 0; i < o->trim.count; i++) {
        const struct trim_call *call = o->trim.calls + i;
        json_begin_object(&w);
        json_key_string(&w, "allocator", call->allocator);
        json_key_string(&w, "function", call->function);
        json_key_u64(&w, "thread_id", (uint64_t)call->tid);
        json_key_u64(&w, "stopped_ns", call->stopped_ns);
        json_key_u64(&w, "held_ns", call->held_ns);
        json_end_object(&w);
    }
    json_end_array(&w);
    TRY(json_finish(&w));
    (void)putchar('\n'); // an error of the stream is found at the end
    return ERR_OK;
}

enum err trim_process(int pid, uint64_t patience_ms, bool use_json, struct err_info *info)
{
    struct process_trim o;
    TRY(process_trim_run(pid, patience_ms, &o, info));
    if (use_json) {
        return print_json(pid, &o);
    }
    print_text(pid, &o);
    return ERR_OK;
}
