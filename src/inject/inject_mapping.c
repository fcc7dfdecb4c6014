// SPDX-License-Identifier: MIT
#include "inject/inject_mapping.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/minmax.h"
#include "host/memory/page_size.h"
#include "inject/process/address_gaps.h"
#include "inject/process/target_reading.h"
#include "inject/process/target_refusal.h"

enum {
    ROUNDS = 5, // of choosing addresses
};

// Memory to map.
struct piece {
    uint64_t bytes;
    uint64_t addr; // 0: not mapped yet
    int prot;
    struct address_range near; // empty: anywhere
    bool may_be_far;           // from the module, if there is no room near it
};

struct pending_write {
    uint64_t addr;
    const uint8_t *from;
    size_t len;
};

static enum err write_stopped(struct thread_stop *stop, void *context, struct err_info *info)
{
    const struct pending_write *write = context;
    const enum err err = thread_stop_write(stop, write->addr, write->from, write->len);
    return err == ERR_OK ? ERR_OK : target_refusal_of_write(stop->target, info);
}

enum err inject_mapping_write(
    struct inject *inject, uint64_t addr, const uint8_t *from, size_t len, struct err_info *info)
{
    if (target_process_write(&inject->target, addr, from, len) == ERR_OK) {
        return ERR_OK;
    }
    struct pending_write write = {.addr = addr, .from = from, .len = len};
    struct stop_options options = inject->options.stop;
    options.only_tid = inject->target.live_tid;
    return thread_stop_run(&inject->target, &options, write_stopped, &write, NULL, info);
}

static enum err explain_failure(const struct inject *inject, int64_t result, struct err_info *info)
{
    if (result >= 0) {
        return err_set(info, ERR_UNSUPPORTED,
                       "the kernel of process %d maps memory at other addresses than wanted; "
                       "attaching needs Linux 4.17",
                       inject->target.pid);
    }
    return target_refusal_of_room(&inject->target, (int)-result, info);
}

// Choose an address for each piece that has none. `calls` gets one mmap for each.
static enum err choose_addresses(struct inject *inject,
                                 const struct piece *pieces,
                                 size_t count,
                                 struct remote_call *calls,
                                 struct err_info *info)
{
    CLEANUP(address_range_vec_release) struct address_range_vec taken = {0};
    for (size_t i = 0, next = 0; i < count; i++) {
        const struct piece *piece = pieces + i;
        if (piece->addr != 0) {
            continue;
        }
        const bool is_near = piece->near.end != 0;
        uint64_t addr =
            is_near ? address_gaps_find_near(&inject->target, &taken, piece->bytes, piece->near)
                    : 0;
        if (addr == 0 && (!is_near || piece->may_be_far)) {
            addr = address_gaps_find(&inject->target, &taken, piece->bytes);
        }
        if (addr == 0) {
            return err_set(info, ERR_NO_MEMORY,
                           "process %d has no free addresses near the code to patch",
                           inject->target.pid);
        }
        TRY(address_range_vec_push(
            &taken, (struct address_range){.start = addr, .end = addr + piece->bytes}));
        calls[next++] = (struct remote_call){
            .number = SYS_mmap,
            .arguments = {addr, piece->bytes, (uint64_t)piece->prot,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, (uint64_t)-1, 0},
        };
    }
    return ERR_OK;
}

// Before Linux 4.17 the address is only a hint, and the result another one.
static enum err take_results(struct inject *inject,
                             struct piece *pieces,
                             size_t count,
                             const struct remote_call *calls,
                             struct err_info *info)
{
    for (size_t i = 0, next = 0; i < count; i++) {
        if (pieces[i].addr != 0) {
            continue;
        }
        const struct remote_call *call = calls + next++;
        if (call->result == (int64_t)call->arguments[0]) {
            pieces[i].addr = call->arguments[0];
        } else if (call->result != -EEXIST) {
            return explain_failure(inject, call->result, info);
        }
    }
    return ERR_OK;
}

static size_t count_unmapped(const struct piece *pieces, size_t count)
{
    size_t unmapped = 0;
    for (size_t i = 0; i < count; i++) {
        unmapped += pieces[i].addr == 0;
    }
    return unmapped;
}

// Map up to REMOTE_CALLS_MAX pieces.
static enum err
map_pieces(struct inject *inject, struct piece *pieces, size_t count, struct err_info *info)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct remote_call calls[REMOTE_CALLS_MAX];
        const size_t unmapped = count_unmapped(pieces, count);
        if (unmapped == 0) {
            return ERR_OK;
        }
        // Other threads map memory at any time, and so did the last round.
        TRY(target_process_refresh(&inject->target, info));
        TRY(choose_addresses(inject, pieces, count, calls, info));
        TRY(remote_calls_run(&inject->calls, calls, unmapped, info));
        TRY(take_results(inject, pieces, count, calls, info));
    }
    return count_unmapped(pieces, count) == 0 ? ERR_OK : explain_failure(inject, -EEXIST, info);
}

static bool is_equal(const struct inject *inject, const struct agent_image *image, uint64_t addr)
{
    uint8_t *found = malloc(image->span);
    bool is_same = found != NULL;
    for (size_t i = 0; is_same && i < image->segment_count; i++) {
        const struct agent_segment *segment = image->segments + i;
        const uint64_t len = segment->end - segment->start;
        is_same =
            (segment->prot & PROT_WRITE) != 0 ||
            (target_process_read(&inject->target, addr + segment->start, found, len) == ERR_OK &&
             memcmp(found, image->memory + segment->start, len) == 0);
    }
    free(found);
    return is_same;
}

// Give each segment its protection and its bytes.
static enum err fill_image(struct inject *inject,
                           const struct agent_image *image,
                           uint64_t addr,
                           struct err_info *info)
{
    struct remote_call calls[AGENT_SEGMENTS_MAX];
    for (size_t i = 0; i < image->segment_count; i++) {
        const struct agent_segment *segment = image->segments + i;
        calls[i] = (struct remote_call){
            .number = SYS_mprotect,
            .arguments = {addr + segment->start, segment->end - segment->start,
                          (uint64_t)segment->prot},
        };
        TRY(inject_mapping_write(inject, addr + segment->start, image->memory + segment->start,
                                 segment->end - segment->start, info));
    }
    TRY(remote_calls_run(&inject->calls, calls, image->segment_count, info));
    for (size_t i = 0; i < image->segment_count; i++) {
        if (calls[i].result != 0) {
            return explain_failure(inject, calls[i].result, info);
        }
    }
    return ERR_OK;
}

// Return the addresses of the module with the largest block; empty: there is none.
static struct address_range main_module(const struct inject_near *nears, size_t count)
{
    struct address_range found = {0};
    uint64_t most = 0;
    for (size_t i = 0; i < count; i++) {
        if (nears[i].bytes > most) {
            most = nears[i].bytes;
            found = (struct address_range){nears[i].module_start, nears[i].module_end};
        }
    }
    return found;
}

enum err inject_mapping_image(struct inject *inject,
                              struct agent_image *image,
                              const struct inject_near *nears,
                              size_t count,
                              struct err_info *info)
{
    const uint64_t noted = inject->note.image_addr;
    if (noted != 0) {
        agent_image_relocate(image, noted);
        if (is_equal(inject, image, noted)) {
            inject->image_addr = noted;
            return ERR_OK;
        }
    }
    struct piece piece = {.bytes = image->span,
                          .prot = PROT_READ | PROT_WRITE,
                          .near = main_module(nears, count),
                          .may_be_far = true};
    TRY(map_pieces(inject, &piece, 1, info));
    agent_image_relocate(image, piece.addr);
    TRY(fill_image(inject, image, piece.addr, info));
    inject->image_addr = piece.addr;
    inject->note.image_addr = piece.addr;
    return ERR_OK;
}

static uint64_t whole_pages(uint64_t bytes)
{
    return page_end(bytes);
}

// Find a block of an earlier attach. Its address must still be mapped, and as a block.
static uint64_t find_noted(const struct inject *inject, const struct inject_near *near)
{
    for (size_t i = 0; i < inject->note.near_count; i++) {
        const struct inject_note_near *noted = inject->note.nears + i;
        const struct target_mapping *mapping =
            target_process_mapping_at(&inject->target, noted->addr);
        if (noted->module_start == near->module_start && noted->key == near->key &&
            noted->image_addr == inject->image_addr && noted->bytes >= near->bytes &&
            mapping != NULL && mapping->prot == (PROT_READ | PROT_EXEC) && mapping->inode == 0 &&
            mapping->end - noted->addr >= near->bytes) {
            return noted->addr;
        }
    }
    return 0;
}

struct inject_note_near *inject_mapping_near_at(struct inject_note *note, uint64_t addr)
{
    for (size_t i = 0; i < note->near_count; i++) {
        if (note->nears[i].addr == addr) {
            return note->nears + i;
        }
    }
    return NULL;
}

static enum err keep_near(struct inject *inject,
                          const struct inject_near *near,
                          const struct piece *piece,
                          struct err_info *info)
{
    struct inject_note *note = &inject->note;
    if (inject_mapping_near_at(note, piece->addr) != NULL) {
        return ERR_OK;
    }
    if (note->near_count == INJECT_NEARS_MAX) {
        return err_set(
            info, ERR_LIMIT,
            "process %d has %d blocks of earlier attaches, which is the limit; to record "
            "it, start it again",
            inject->target.pid, (int)INJECT_NEARS_MAX);
    }
    note->nears[note->near_count++] = (struct inject_note_near){
        .module_start = near->module_start,
        .key = near->key,
        .image_addr = inject->image_addr,
        .addr = piece->addr,
        .bytes = piece->bytes,
    };
    return ERR_OK;
}

static enum err
map_nears(struct inject *inject, struct inject_near *nears, size_t count, struct err_info *info)
{
    struct piece pieces[REMOTE_CALLS_MAX];
    for (size_t i = 0; i < count; i++) {
        pieces[i] = (struct piece){
            .bytes = whole_pages(nears[i].bytes),
            .addr = find_noted(inject, nears + i),
            .prot = PROT_READ | PROT_EXEC,
            .near = {.start = nears[i].module_start, .end = nears[i].module_end},
        };
    }
    TRY(map_pieces(inject, pieces, count, info));
    for (size_t i = 0; i < count; i++) {
        TRY(keep_near(inject, nears + i, pieces + i, info));
        nears[i].addr = pieces[i].addr;
    }
    return ERR_OK;
}

enum err inject_mapping_nears(struct inject *inject,
                              struct inject_near *nears,
                              size_t count,
                              struct err_info *info)
{
    for (size_t at = 0; at < count; at += REMOTE_CALLS_MAX) {
        TRY(map_nears(inject, nears + at, min_u64(count - at, REMOTE_CALLS_MAX), info));
    }
    return ERR_OK;
}
