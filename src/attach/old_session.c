// SPDX-License-Identifier: MIT
#include "attach/old_session.h"

#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>

#include "attach/agent_bytes.h"
#include "base/compiler.h"
#include "host/memory/page_size.h"
#include "inject/agent_image.h"
#include "inject/process/target_reading.h"
#include "inject/process/threads/stop_scan.h"
#include "inject/process/threads/thread_regs.h"
#include "session/agent_page.h"
#include "session/layout.h"

enum {
    LOOKS = 3, // a thread that waits in the agent is not waited for
};

struct search {
    struct address_range agent;
    uint32_t looks;
    bool is_in_use; // at the latest look
};

// Whether the thread may be in the agent. One whose stack cannot be read may.
static bool may_be_in(const struct thread_stop *stop,
                      const struct user_regs_struct *regs,
                      const struct address_range *agent)
{
    uint64_t word;
    return stop_scan_is_in(agent, 1, thread_regs_pc(regs)) ||
           target_process_read(stop->target, thread_regs_sp(regs), &word, sizeof(word)) != ERR_OK ||
           stop_scan_stack(stop->target, regs, agent, 1);
}

// Look at stopped threads. Attempts that stop them too late, on a busy machine, are no looks.
static enum err look_at_threads(struct thread_stop *stop, void *context, struct err_info *info)
{
    (void)info;
    struct search *search = context;
    search->is_in_use = false;
    for (size_t i = 0; i < stop->threads.len && !search->is_in_use; i++) {
        search->is_in_use = may_be_in(stop, &stop->threads.items[i].regs, &search->agent);
    }
    search->looks++;
    stop->try_again = search->is_in_use && search->looks < LOOKS;
    return ERR_OK;
}

static enum err find_agent(const struct attach *attach, struct address_range *out)
{
    struct err_info unused = {0};
    CLEANUP(agent_image_release) struct agent_image image = {0};
    TRY(agent_image_init(&image, agent_bytes(), page_bytes(), &unused));
    *out = (struct address_range){.start = attach->inject.image_addr,
                                  .end = attach->inject.image_addr + image.span};
    return ERR_OK;
}

// The program can write to the agent's page, so the address is not believed: only memory of that
// file which is at its place in a session counts.
static bool is_reserved(const struct target_process *target,
                        const struct target_mapping *mapping,
                        uint64_t session)
{
    const struct target_mapping *first = target_process_mapping_at(target, session);
    return first != NULL && first->start == session && first->inode != 0 && first->file_off == 0 &&
           strcmp(target_process_path(target, first->path), "/memfd:cairn-session") == 0 &&
           mapping->inode == first->inode && mapping->prot == 0 &&
           target_process_is_path(target, mapping->path, first->path) &&
           mapping->start >= session + SESSION_LANES_OFFSET &&
           mapping->end <= session + SESSION_FILE_BYTES_MAX &&
           mapping->file_off == mapping->start - session;
}

// Unmap at most REMOTE_CALLS_MAX pieces: there is one more than lanes that were opened apart from
// each other, and lanes are opened from the first one on.
static void unmap_reserved(struct attach *attach, uint64_t session)
{
    struct err_info unused = {0};
    struct remote_call calls[REMOTE_CALLS_MAX];
    size_t count = 0;
    const struct target_process *target = &attach->inject.target;
    for (size_t i = target->mappings.len; i-- > 0 && count < REMOTE_CALLS_MAX;) {
        const struct target_mapping *mapping = target->mappings.items + i;
        if (is_reserved(target, mapping, session)) {
            calls[count++] = (struct remote_call){
                .number = SYS_munmap, .arguments = {mapping->start, mapping->end - mapping->start}};
        }
    }
    if (count > 0) { // refused, they stay reserved
        (void)!remote_calls_run(&attach->inject.calls, calls, count, &unused);
    }
}

void old_session_release(struct attach *attach)
{
    struct err_info unused = {0};
    struct inject *inject = &attach->inject;
    struct search search = {0};
    uint64_t session = 0;
    const uint64_t at = attach->page_addr + offsetof(struct agent_page, session);
    if (target_process_read(&inject->target, at, &session, sizeof(session)) != ERR_OK ||
        session == 0 || inject->options.stop.is_held ||
        find_agent(attach, &search.agent) != ERR_OK) {
        return;
    }
    if (thread_stop_run(&inject->target, &inject->options.stop, look_at_threads, &search, NULL,
                        &unused) == ERR_OK &&
        !search.is_in_use && target_process_refresh(&inject->target, &unused) == ERR_OK) {
        unmap_reserved(attach, session);
        (void)!target_process_refresh(&inject->target,
                                      &unused); // the next step reads what it needs
    }
}
