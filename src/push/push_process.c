// SPDX-License-Identifier: MIT
// push_process: see push_process.h.
#include "push/push_process.h"

#include <limits.h>
#include <malloc.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/minmax.h"
#include "host/http/http_client.h"
#include "push/push_profile.h"
#include "push/pusher.h"

enum {
    ANSWER_MAX_BYTES = 64 << 10,
    SPOOL_SHARE = 4,  // of the memory, for profiles that wait
    GRACE_MS = 30000, // to read the last state of the recording on a busy machine
};

// The side process's state.
struct push {
    const struct push_options *options;
    struct push_report *report;
    struct push_source source;
    struct pusher pusher;
    struct http_client *client;
    int channel;
    bool has_trouble; // report->failure is of now: no request has succeeded since
    uint64_t end_ms;  // when to give up; UINT64_MAX while the recorder runs
};

// Return whether time is up. It begins to run when the recorder has ended, also in the middle of a
// request.
static bool is_too_late(void *owner)
{
    struct push *push = owner;
    struct pollfd event = {.fd = push->channel, .events = POLLRDHUP};
    const uint64_t now_ms = clock_monotonic_ms();
    if (push->end_ms == UINT64_MAX && poll(&event, 1, 0) == 1) {
        push->end_ms = now_ms + push->options->timeout_ms;
    }
    return now_ms >= push->end_ms;
}

// Publish the counts. Relaxed: they order nothing else.
static void send_counts(const struct push *push)
{
    const struct pusher *pusher = &push->pusher;
    atomic_store_explicit(&push->report->sent_count, pusher->sent_count, memory_order_relaxed);
    atomic_store_explicit(&push->report->lost_count, pusher->spool.lost_count,
                          memory_order_relaxed);
    atomic_store_explicit(&push->report->waiting_count, pusher->spool.entries.len,
                          memory_order_relaxed);
    atomic_store_explicit(&push->report->reduced_count,
                          push->source.reduced_count + pusher->smaller_count, memory_order_relaxed);
}

static enum err
send_entry(void *context, struct bytes entry, bool is_smaller, struct http_answer *answer)
{
    struct push *push = context;
    struct err_info *failure = &push->report->failure;
    struct err_info problem = {0};
    CLEANUP(push_request_release) struct push_request made = {0};
    TRY(push_request_make(push->options->url, entry, is_smaller, &made));
    const struct http_request request = {.url = strbuf_text(&made.url),
                                         .body = strbuf_bytes(&made.body),
                                         .content_type = push_content_type,
                                         .is_cancelled = is_too_late,
                                         .owner = push};
    const enum err err = http_client_send(push->client, &request, answer, &problem);
    const bool is_taken = err == ERR_OK && answer->status >= 200 && answer->status < 300;
    if (err == ERR_OK && !is_taken) {
        (void)err_set(&problem, ERR_IO, "the collector answered with status %u", answer->status);
    }
    // A request at the end of the recorder may only lack time: an earlier reason says more.
    const bool is_reason = err == ERR_OK || push->end_ms == UINT64_MAX || !push->has_trouble;
    if (problem.text[0] != '\0' && is_reason) {
        *failure = problem;
    }
    push->has_trouble = !is_taken && failure->text[0] != '\0';
    return err == ERR_INVALID ? ERR_IO : err; // ERR_INVALID says that the entry is not ours
}

static void take_entry(void *context, uint64_t order, struct bytes entry)
{
    struct push *push = context;
    push_spool_add(&push->pusher.spool, order, entry);
}

static void collect_profiles(struct push *push)
{
    struct err_info info = {0};
    const enum err err = push_source_collect(&push->source, take_entry, push, &info);
    if (err != ERR_OK && err != ERR_NOT_FOUND) {
        info.code = err;
        (void)err_set(&push->report->failure, err, "%s", err_text(&info)); // for the end
        push->has_trouble = true;
        push->pusher.spool.lost_count++;
    }
    (void)malloc_trim(0); // most of the time it only waits
}

// Send what may be sent now.
static void send_all(struct push *push)
{
    uint64_t random = 0;
    (void)!getrandom(&random, sizeof(random), GRND_NONBLOCK); // 0 is as good
    while (pusher_send(&push->pusher, send_entry, push, clock_monotonic_ms(), random)) {
        send_counts(push);
    }
    send_counts(push);
}

static void wait_until(uint64_t next_ms, int channel)
{
    const uint64_t now_ms = clock_monotonic_ms();
    struct pollfd event = {.fd = channel, .events = POLLIN};
    (void)poll(&event, 1, next_ms > now_ms ? (int)min_u64(next_ms - now_ms, INT_MAX) : 0);
}

static bool has_message(int channel)
{
    struct pollfd event = {.fd = channel, .events = POLLIN};
    return poll(&event, 1, 0) == 1;
}

// Send the last profile and the rest, as long as there is time.
static void finish_push(struct push *push)
{
    (void)is_too_late(push); // time begins to run
    push->pusher.send_ms = 0;
    collect_profiles(push);
    send_all(push);
    while (push->pusher.spool.entries.len > 0 && push->pusher.send_ms < push->end_ms) {
        wait_until(push->pusher.send_ms, -1);
        send_all(push);
    }
    push_spool_settle(&push->pusher.spool);
    send_counts(push);
}

static enum err begin_push(void *context, struct err_info *info)
{
    struct push *push = context;
    const struct http_client_options client = {.credentials = push->options->credentials,
                                               .ca_file = push->options->ca_file,
                                               .timeout_ms = push->options->timeout_ms,
                                               .body_max_bytes = ANSWER_MAX_BYTES};
    uint64_t spool_bytes = push->options->spool_max_bytes;
    if (push->options->spool == NULL && push->options->memory_max_bytes != 0) {
        spool_bytes = min_u64(spool_bytes, push->options->memory_max_bytes / SPOOL_SHARE);
    }
    TRY(push_spool_open(push->options->spool, spool_bytes, &push->pusher.spool, info));
    push->pusher.collect_ms = clock_monotonic_ms() + push->pusher.interval_ms;
    send_counts(push);
    return http_client_new(&client, &push->client, info);
}

static void run_push(void *context, int channel)
{
    struct push *push = context;
    struct side_message message;
    push->channel = channel;
    for (;;) {
        wait_until(pusher_next_ms(&push->pusher), channel);
        if (has_message(channel)) {
            if (!side_process_receive(channel, &message)) {
                break;
            }
            (void)!push_source_set_path(&push->source, &message); // without memory, nothing is sent
        }
        if (pusher_is_due(&push->pusher, clock_monotonic_ms())) {
            collect_profiles(push);
        }
        send_all(push);
    }
    finish_push(push);
}

enum err push_process_start(const struct push_options *options,
                            const struct name_sources *names,
                            struct push_process *out,
                            struct err_info *info)
{
    void *report = mmap(NULL, sizeof(struct push_report), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (report == MAP_FAILED) {
        return ERR_NO_MEMORY;
    }
    struct push push = {.options = options,
                        .report = report,
                        .source = {.names = names,
                                   .limits = options->limits,
                                   .names_of_processes = {.labels = options->labels,
                                                          .label_count = options->label_count}},
                        .pusher = {.interval_ms = options->interval_ms},
                        .end_ms = UINT64_MAX};
    const struct side_process_work work = {.name = "cairn-push",
                                           .what = "its process",
                                           .memory_max_bytes = options->memory_max_bytes,
                                           .context = &push,
                                           .begin = begin_push,
                                           .run = run_push};
    struct push_process process = {.report = report, .side.channel = -1};
    const enum err err = side_process_start(&work, &process.side, info);
    if (err != ERR_OK) {
        push_process_release(&process);
        return err;
    }
    *out = process;
    return ERR_OK;
}

bool push_process_stop(struct push_process *push, const struct push_options *options)
{
    return side_process_stop(&push->side, options->timeout_ms + GRACE_MS);
}

void push_process_release(struct push_process *push)
{
    if (push->report != NULL) {
        (void)munmap(push->report, sizeof(*push->report)); // mapped by push_process_start
    }
    push->report = NULL;
}
