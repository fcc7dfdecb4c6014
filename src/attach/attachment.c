// SPDX-License-Identifier: MIT
// attachment: the steps of attach.h behind attach_open.c, but for modules that come later
// (attach_late.c).
#include "attach/attach.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "attach/agent_bytes.h"
#include "attach/agent_tables.h"
#include "attach/attach_plan.h"
#include "attach/old_session.h"
#include "base/compiler.h"
#include "host/os/proc_file.h"
#include "inject/api_pointers.h"
#include "inject/descriptor_gift.h"
#include "inject/inject_mapping.h"
#include "inject/process/target_reading.h"
#include "inject/process/target_refusal.h"
#include "session/agent_page.h"
#include "session/layout.h"
#include "symbols/runtimes/runtime_table.h"

static enum err check_call(const struct attach *attach,
                           const struct remote_call *call,
                           const char *what,
                           struct err_info *info)
{
    return (uint64_t)call->result < (uint64_t)-4095
               ? ERR_OK
               : err_set_errno(info, (int)-call->result, "process %d cannot %s",
                               attach->inject.target.pid, what);
}

static enum err
check_map(const struct attach *attach, const struct remote_call *call, struct err_info *info)
{
    return (uint64_t)call->result < (uint64_t)-4095
               ? ERR_OK
               : target_refusal_of_room(&attach->inject.target, (int)-call->result, info);
}

// Map the session's file without access: with its words, unless it has none, or address space is
// scarce.
static enum err map_session(struct attach *attach,
                            int session_fd,
                            int target_fd,
                            struct agent_places *places,
                            struct err_info *info)
{
    struct stat status;
    const bool has_words =
        fstat(session_fd, &status) == 0 && (uint64_t)status.st_size >= SESSION_FILE_BYTES_MAX;
    places->session_bytes = has_words ? SESSION_FILE_BYTES_MAX : SESSION_BYTES;
    struct remote_call map = {.number = SYS_mmap,
                              .arguments = {0, places->session_bytes, PROT_NONE,
                                            MAP_SHARED | MAP_NORESERVE, (uint64_t)target_fd, 0}};
    TRY(remote_calls_run(&attach->inject.calls, &map, 1, info));
    if (has_words && map.result == -ENOMEM) {
        places->session_bytes = SESSION_BYTES;
        map.arguments[1] = SESSION_BYTES;
        TRY(remote_calls_run(&attach->inject.calls, &map, 1, info));
    }
    places->session = (uint64_t)map.result;
    places->words =
        places->session_bytes > SESSION_BYTES ? places->session + SESSION_WORDS_OFFSET : 0;
    return check_map(attach, &map, info);
}

// Map the session, and what the process needs of its own for this attach.
static enum err map_memory(struct attach *attach,
                           int session_fd,
                           struct agent_places *places,
                           struct err_info *info)
{
    enum {
        ATTACHMENT,
        PROCESS_PAGE,
        CLOSE,
    };
    const uint64_t prot = PROT_READ | PROT_WRITE;
    const uint64_t flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    int fd = -1; // of the session, in the process
    TRY(descriptor_gift_send(&attach->inject,
                             attach->page_addr + offsetof(struct agent_page, scratch), session_fd,
                             &fd, info));
    TRY(map_session(attach, session_fd, fd, places, info));
    struct remote_call maps[] = {
        [ATTACHMENT] = {.number = SYS_mmap,
                        .arguments = {0, sizeof(struct agent_attachment), prot, flags, UINT64_MAX,
                                      0}},
        [PROCESS_PAGE] = {.number = SYS_mmap,
                          .arguments = {0, AGENT_PROCESS_PAGE_BYTES, prot, flags, UINT64_MAX, 0}},
        [CLOSE] = {.number = SYS_close, .arguments = {(uint64_t)fd}},
    };
    TRY(remote_calls_run(&attach->inject.calls, maps, ARRAY_LEN(maps), info));
    for (size_t i = 0; i < CLOSE; i++) {
        TRY(check_map(attach, maps + i, info));
    }
    places->attachment = (uint64_t)maps[ATTACHMENT].result;
    places->process_page = (uint64_t)maps[PROCESS_PAGE].result;
    struct remote_call advice[] = {
        {.number = SYS_mprotect, .arguments = {places->session, SESSION_LANES_OFFSET, prot}},
        {.number = SYS_madvise,
         .arguments = {places->process_page, AGENT_PROCESS_PAGE_BYTES, MADV_WIPEONFORK}},
        {.number = SYS_madvise,
         .arguments = {places->session, places->session_bytes, MADV_DONTDUMP}},
    };
    TRY(remote_calls_run(&attach->inject.calls, advice, ARRAY_LEN(advice), info));
    TRY(check_call(attach, advice, "use the session's memory", info));
    return check_call(attach, advice + 1, "keep memory from its children", info);
}

// Write the unwind tables of the modules that lack them.
static enum err
write_unwind(struct attach *attach, struct agent_unwind_vec *out, struct err_info *info)
{
    for (size_t i = 0; i < attach->modules.len; i++) {
        const struct attach_module *found = attach->modules.items + i;
        const struct agent_unwind unwind = {
            .module_start = found->module.start,
            .addr = attach->nears.items[i].addr + attach_plan_slots_bytes(found),
            .bytes = unwind_copy_bytes(&found->unwind),
        };
        if (unwind.bytes == 0) {
            continue;
        }
        CLEANUP(strbuf_release) struct strbuf bytes = {0};
        if (unwind_copy_make(&found->unwind, found->module.load_bias, unwind.addr, &bytes) !=
                ERR_OK ||
            agent_unwind_vec_push(out, unwind) != ERR_OK) {
            return ERR_NO_MEMORY;
        }
        TRY(inject_mapping_write(&attach->inject, unwind.addr, (const uint8_t *)bytes.data,
                                 bytes.len, info));
    }
    return ERR_OK;
}

static enum err set_enabled(const struct inject *inject, uint64_t page_addr, uint32_t enabled)
{
    return target_process_write(&inject->target, page_addr + offsetof(struct agent_page, enabled),
                                &enabled, sizeof(enabled));
}

// Note what walks will miss.
static enum err note_gaps(struct attach *attach, const struct agent_gaps *gaps)
{
    attach_plan_note_modules(attach);
    if (gaps->lacks_stack_top) {
        attach_plan_note_unread(attach, "the end of the first thread's stack");
    }
    if (gaps->omitted_modules > 0) {
        attach_plan_note_unread(attach, "modules beyond the room of the agent's list");
    }
    return strbuf_result(&attach->unread);
}

static uint64_t api_table(const struct inject *inject)
{
    return inject_symbol(inject, agent_bytes(), API_TABLE_SYMBOL);
}

// Whether the process notes its exit: its libc's function is hooked.
static bool notes_exit(const struct attach *attach)
{
    for (size_t i = 0; i < attach->plan.patches.len; i++) {
        if (attach->plan.patches.items[i].hook == AGENT_EXIT) {
            return true;
        }
    }
    return false;
}

// Return the enum process_flags that say what the process's environment has.
static uint32_t settings_flags(pid_t pid)
{
    CLEANUP(strbuf_release) struct strbuf environment = {0};
    return proc_file_read(pid, "environ", PROC_FILE_ENVIRONMENT_BYTES, &environment)
               ? PROCESS_SETTINGS | runtime_table_settings(strbuf_bytes(&environment))
                                        << PROCESS_SETTINGS_SHIFT
               : 0;
}

static enum err begin(struct attach *attach, int session_fd, struct err_info *info)
{
    struct agent_places places = {0};
    CLEANUP(agent_unwind_vec_release) struct agent_unwind_vec unwind = {0};
    TRY(write_unwind(attach, &unwind, info));
    old_session_release(attach);
    TRY(map_memory(attach, session_fd, &places, info));
    places.page = attach->page_addr;
    places.unwind = &unwind;
    places.process_flags = (attach->is_fresh ? 0 : PROCESS_ATTACHED) |
                           (notes_exit(attach) ? PROCESS_NOTES_EXIT : 0) |
                           settings_flags(attach->inject.target.pid);
    struct agent_gaps gaps = {0};
    if (agent_tables_write(attach, &places, &gaps) != ERR_OK ||
        set_enabled(&attach->inject, attach->page_addr, 1) != ERR_OK) {
        return target_refusal_of_write(&attach->inject.target, info);
    }
    TRY(note_gaps(attach, &gaps));
    const enum err err = inject_patch(&attach->inject, &attach->plan, info);
    if (err == ERR_OK) {
        api_pointers_give(&attach->inject.target, api_table(&attach->inject));
    }
    attach->inject.options.stop.is_held = false; // from now on it is like any other process
    attach->inject.calls.stop.is_held = false;
    attach->is_patched = err == ERR_OK;
    attach->hooked_count = attach->plan.patches.len;
    if (err != ERR_OK) {
        (void)set_enabled(&attach->inject, attach->page_addr, 0); // nothing calls the agent
    }
    return err;
}

enum err attach_begin(struct attach *attach, int session_fd, struct err_info *info)
{
    return target_refusal_if_gone(&attach->inject.target, begin(attach, session_fd, info), info);
}

// The program's calls of cairn.h do nothing from now on.
static void take_api_back(struct inject *inject)
{
    struct err_info unused = {0};
    if (target_process_refresh(&inject->target, &unused) == ERR_OK) { // else it has ended
        api_pointers_take_back(&inject->target, api_table(inject));
    }
}

enum err attach_end(struct attach *attach, struct err_info *info)
{
    if (!attach->is_patched) {
        return ERR_OK;
    }
    take_api_back(&attach->inject);
    const enum err err = inject_unpatch(&attach->inject, info);
    attach->is_patched = err == ERR_LIMIT; // its threads could not be stopped: try again
    (void)set_enabled(&attach->inject, attach->page_addr, 0); // fails if the process has ended
    return err;
}

// Opening it restores the functions.
enum err attach_end_copy(int pid, struct err_info *info)
{
    struct inject inject;
    enum err err = inject_open(&inject, pid, NULL, info);
    if (err != ERR_OK) {
        return err == ERR_NOT_FOUND ? ERR_OK : err; // it has ended
    }
    inject.image_addr = inject.note.image_addr;
    const uint64_t page_addr = inject_symbol(&inject, agent_bytes(), AGENT_PAGE_SYMBOL);
    if (page_addr != 0) {
        (void)set_enabled(&inject, page_addr, 0); // fails if it has ended
    }
    take_api_back(&inject);
    inject_close(&inject);
    return ERR_OK;
}

void attach_release(struct attach *attach)
{
    attach_plan_release(attach);
    strbuf_release(&attach->executable);
    strbuf_release(&attach->command_line);
    u32_vec_release(&attach->threads);
    strbuf_release(&attach->thread_names);
    strbuf_release(&attach->allocator);
    strbuf_release(&attach->hidden);
    strbuf_release(&attach->hidden_in);
    strbuf_release(&attach->unpatched);
    attach_hook_vec_release(&attach->hooks);
    strbuf_release(&attach->hook_texts);
    strbuf_release(&attach->unread);
    inject_close(&attach->inject);
    *attach = (struct attach){0};
}
