// SPDX-License-Identifier: MIT
// findings_uneven: a thread or process that holds much more than its siblings.
//
// Siblings are threads of one process whose names differ only in digits ("worker-1", "worker-2"),
// without the process's first thread, or processes of one executable and one subcommand ("git
// repack"), each in its last image, without the parent of one of them. Where threads give
// themselves names, one that has none yet may be of any kind. A thread is judged by what it holds
// at the peak, a process by its own peak: processes of one kind often run one after the other.
// Where most siblings hold nothing, nothing is uneven.
#include <inttypes.h>
#include <string.h>

#include "base/compiler.h"
#include "base/order.h"
#include "host/os/file.h"
#include "profile/findings/findings_builder.h"

enum {
    SIBLINGS_MIN = 4,
    TIMES_MEDIAN = 4,
    SHARE_OF_PEAK = 10, // a tenth
    UNEVEN_PER_SCORE = 4,
};

#define UNEVEN_BYTES_MIN (UINT64_C(8) << 20)
#define WORD_LETTERS     "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"

struct sibling {
    uint32_t id; // in the table of threads or processes
    uint32_t process;
    const char *name;
    struct bytes subcommand; // of a process; may be empty
    uint64_t bytes;
};

DEFINE_VEC(sibling_vec, struct sibling);

// Compare names without their digits.
static int compare_names(const char *a, const char *b)
{
    for (;; a++, b++) {
        a += strspn(a, "0123456789");
        b += strspn(b, "0123456789");
        if (*a != *b || *a == '\0') {
            return (unsigned char)*a - (unsigned char)*b;
        }
    }
}

static int compare_families(const struct sibling *a, const struct sibling *b)
{
    return order_u64(a->process, b->process)
               ?: compare_names(a->name, b->name)
               ?: order_u64(a->subcommand.len, b->subcommand.len)
               ?: (a->subcommand.len > 0
                       ? memcmp(a->subcommand.data, b->subcommand.data, a->subcommand.len)
                       : 0); // neither has one
}

static int compare_processes(const void *left, const void *right)
{
    const struct sibling *a = left;
    const struct sibling *b = right;
    return compare_families(a, b) ?: order_u64(a->bytes, b->bytes) ?: order_u64(a->id, b->id);
}

// Find the sibling that exceeds the median of its family by most. Siblings are sorted.
static const struct sibling *find_uneven(const struct sibling_vec *siblings,
                                         const struct sibling **out_median,
                                         size_t *out_count)
{
    const struct sibling *found = NULL;
    for (size_t first = 0, end; first < siblings->len; first = end) {
        end = first;
        while (end < siblings->len &&
               compare_families(&siblings->items[first], &siblings->items[end]) == 0) {
            end++;
        }
        const struct sibling *largest = &siblings->items[end - 1];
        const struct sibling *median = &siblings->items[first + (end - first) / 2];
        if (end - first >= SIBLINGS_MIN && largest->bytes >= UNEVEN_BYTES_MIN &&
            median->bytes > 0 && largest->bytes / TIMES_MEDIAN >= median->bytes &&
            (found == NULL || largest->bytes > found->bytes)) {
            found = largest;
            *out_median = median;
            *out_count = end - first;
        }
    }
    return found;
}

static MUST_USE enum err
add_uneven(struct findings_builder *builder, struct sibling_vec *siblings, bool are_threads)
{
    const struct profile *profile = builder->selection->profile;
    const uint64_t peak_bytes = builder->summary->costs.values[COST_PEAK_BYTES];
    if (siblings->len < SIBLINGS_MIN) {
        return ERR_OK;
    }
    sibling_vec_sort(siblings, compare_processes);
    const struct sibling *median = NULL;
    size_t count = 0;
    const struct sibling *most = find_uneven(siblings, &median, &count);
    if (most == NULL || most->bytes < peak_bytes / SHARE_OF_PEAK) {
        return ERR_OK;
    }
    const struct recording *recording = &profile->recording;
    struct finding finding = {
        .kind = FINDING_UNEVEN,
        .confidence = CONFIDENCE_MEDIUM,
        .location = REC_NONE,
        .pid = recording->processes[are_threads ? most->process : most->id].pid,
        .thread_id = are_threads ? recording->threads[most->id].thread_id : 0,
        .bytes = most->bytes,
        .whole_bytes = peak_bytes,
        .bytes_error = sampling_error_of_bytes(&builder->sampling, most->bytes),
        .whole_bytes_error = finding_error(builder, &builder->summary->costs, COST_PEAK_BYTES),
        .score = (most->bytes - median->bytes) / UNEVEN_PER_SCORE,
        .look = are_threads ? "--group-by=thread" : "--group-by=process"};
    struct strbuf *out = finding_begin(builder, &finding);
    if (are_threads) {
        strbuf_printf(out, "Thread %s holds ", most->name);
        strbuf_printf(out, "%s at the peak; ", finding_format_bytes(builder, most->bytes).text);
        strbuf_printf(out, "the median of %zu of its kind holds %s.", count,
                      finding_format_bytes(builder, median->bytes).text);
    } else {
        strbuf_printf(out, "Process %s (pid %" PRIu32 ") held ", path_file_name(most->name),
                      finding.pid);
        strbuf_printf(out, "%s at its own peak; ", finding_format_bytes(builder, most->bytes).text);
        strbuf_printf(out, "the median of %zu of its kind held %s.", count,
                      finding_format_bytes(builder, median->bytes).text);
    }
    return finding_add(builder, &finding);
}

// Whether a process has started another one that runs the same executable, or has executed another
// program itself.
static bool has_successor(const struct recording *recording, uint32_t process)
{
    const struct rec_process *parent = &recording->processes[process];
    for (size_t i = 0; i < recording->process_count; i++) {
        const struct rec_process *child = &recording->processes[i];
        if ((child->parent_pid == parent->pid && child->executable == parent->executable) ||
            (child->pid == parent->pid && child->epoch > parent->epoch)) {
            return true;
        }
    }
    return false;
}

// Return the second word of a command line if it is a word: letters and dashes. Files, figures and
// options are none.
static struct bytes subcommand_of(const char *command_line)
{
    const char *start = command_line + strcspn(command_line, " ");
    start += strspn(start, " ");
    const size_t length = strcspn(start, " ");
    const bool is_word = *start != '-' && strspn(start, WORD_LETTERS) == length;
    return (struct bytes){.data = (const uint8_t *)start, .len = is_word ? length : 0};
}

// Threads begin with the name of the first one.
struct names {
    struct u32_vec first;     // owned; by process: its first thread's name, 0 if unknown
    struct flag_vec are_used; // owned; by process: a thread has given itself another one
};

static void names_release(struct names *names)
{
    u32_vec_release(&names->first);
    flag_vec_release(&names->are_used);
}

static MUST_USE enum err find_names(const struct recording *recording, struct names *out)
{
    TRY(u32_vec_resize(&out->first, recording->process_count));
    TRY(flag_vec_resize(&out->are_used, recording->process_count));
    for (size_t i = 0; i < recording->thread_count; i++) {
        const struct rec_thread *thread = &recording->threads[i];
        if (thread->thread_id == recording->processes[thread->process].pid) {
            out->first.items[thread->process] = thread->name;
        }
    }
    for (size_t i = 0; i < recording->thread_count; i++) {
        const struct rec_thread *thread = &recording->threads[i];
        const rec_string first = out->first.items[thread->process];
        out->are_used.items[thread->process] |= first != 0 && thread->name != first;
    }
    return ERR_OK;
}

// Whether the thread is of a kind that its name tells.
static bool has_kind(const struct names *names, const struct rec_thread *thread)
{
    return names->are_used.items[thread->process] == 0 ||
           thread->name != names->first.items[thread->process];
}

static MUST_USE enum err list_threads(const struct findings_builder *builder,
                                      struct sibling_vec *out)
{
    const struct profile *profile = builder->selection->profile;
    const struct recording *recording = &profile->recording;
    CLEANUP(group_vec_release) struct group_vec groups = {0};
    CLEANUP(names_release) struct names names = {0};
    if (recording->thread_count < SIBLINGS_MIN) {
        return ERR_OK;
    }
    TRY(find_names(recording, &names));
    TRY(groups_build(builder->selection, GROUP_BY_THREAD, &groups));
    for (size_t i = 0; i < groups.len; i++) {
        const uint32_t id = groups.items[i].id;
        const struct rec_thread *thread = id != REC_NONE ? &recording->threads[id] : NULL;
        if (thread != NULL && thread->merged_count == 1 && has_kind(&names, thread) &&
            thread->thread_id != recording->processes[thread->process].pid) {
            TRY(sibling_vec_push(
                out,
                (struct sibling){.id = id,
                                 .process = thread->process,
                                 .name = profile_string(profile, thread->name),
                                 .bytes = costs_get(&groups.items[i].costs, COST_PEAK_BYTES)}));
        }
    }
    return ERR_OK;
}

static MUST_USE enum err list_processes(const struct findings_builder *builder,
                                        struct sibling_vec *out)
{
    enum {
        PROCESSES_MAX = 4096 // has_successor visits all for each
    };
    const struct profile *profile = builder->selection->profile;
    const struct recording *recording = &profile->recording;
    if (recording->process_count > PROCESSES_MAX) {
        return ERR_OK;
    }
    for (uint32_t i = 0; i < recording->process_count; i++) {
        const struct rec_process *process = &recording->processes[i];
        if (!has_successor(recording, i)) {
            TRY(sibling_vec_push(
                out, (struct sibling){.id = i,
                                      .name = profile_string(profile, process->executable),
                                      .subcommand = subcommand_of(
                                          profile_string(profile, process->command_line)),
                                      .bytes = process->peak_bytes}));
        }
    }
    return ERR_OK;
}

enum err findings_add_uneven(struct findings_builder *builder)
{
    CLEANUP(sibling_vec_release) struct sibling_vec threads = {0};
    CLEANUP(sibling_vec_release) struct sibling_vec processes = {0};
    if (!profile_knows(builder->selection->profile, COST_PEAK_BYTES)) {
        return ERR_OK;
    }
    TRY(list_threads(builder, &threads));
    TRY(add_uneven(builder, &threads, true));
    if (builder->selection->is_everything) {
        TRY(list_processes(builder, &processes));
    }
    return add_uneven(builder, &processes, false);
}
