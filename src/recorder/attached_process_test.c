// SPDX-License-Identifier: MIT
// attached_process: a program is attached to, loads libraries with allocators, is let go and is
// attached to again: what is found, what its memory has, and what is counted. The program is
// tests/programs/attach/late_loader.c.
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "aggregate/aggregator.h"
#include "attach/attach.h"
#include "attach/plain_modules.h"
#include "base/compiler.h"
#include "base/sys.h"
#include "host/os/file.h"
#include "inject/allocators/allocator_names.h"
#include "inject/process/target_reading.h"
#include "recorder/ingest/drain.h"
#include "recorder/session/session_create.h"
#include "session/agent_page.h"

#define PROGRAM PROGRAMS "/late_loader"
#define LATE    PROGRAMS "/liblate_je.so"

enum {
    ROUND = 280, // allocations of a library_round
};

struct fixture {
    pid_t pid;
    int ask;
    int answer;
    struct attach attach;
    struct session session;
    struct aggregator aggregator;
    struct drain drain;
    struct plain_modules plain;
    struct err_info info;
};
static struct fixture f;

static void start_program(void)
{
    int ask[2];
    int answer[2];
    assert_int_equal(pipe(ask), 0);
    assert_int_equal(pipe(answer), 0);
    f.pid = fork();
    if (f.pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)dup2(ask[0], STDIN_FILENO);
        (void)dup2(answer[1], STDOUT_FILENO);
        for (int fd = STDERR_FILENO + 1; fd < 64; fd++) {
            (void)close(fd);
        }
        (void)execl(PROGRAM, PROGRAM, LATE, (char *)NULL);
        _exit(1);
    }
    assert_int_equal(close(ask[0]), 0);
    assert_int_equal(close(answer[1]), 0);
    f.ask = ask[1];
    f.answer = answer[0];
}

// As the recorder does for a process that has loaded a library and waits for its hooks.
static void answer_notes(void)
{
    for (uint32_t i = 0; i < SESSION_EXEC_NOTES; i++) {
        struct exec_note *note = session_exec_note(f.session.memory, i);
        if (atomic_load(&note->state) == EXEC_NOTE_READY) {
            assert_int_equal(note->has_loaded, 1);
            assert_int_equal(note->pid, f.pid);
            atomic_store(&note->follow, EXEC_FOLLOW_NO);
            atomic_store(&note->state, EXEC_NOTE_FREE);
            (void)sys_futex_wake(&note->follow, 1); // it may not sleep yet
        }
    }
}

// Give a command, and wait until it has been obeyed.
static void tell(const char *command)
{
    enum {
        LOOK_MS = 1 // at what the program waits for
    };
    char text[8] = "";
    struct pollfd done = {.fd = f.answer, .events = POLLIN};
    assert_int_equal(dprintf(f.ask, "%s\n", command), strlen(command) + 1);
    while (poll(&done, 1, LOOK_MS) == 0) {
        answer_notes();
    }
    assert_int_equal(read(f.answer, text, sizeof(text) - 1), 5);
    assert_string_equal(text, "done\n");
}

static void open_session(void)
{
    assert_int_equal(session_create(&(struct session_options){.max_frames = 64}, &f.session, NULL),
                     ERR_OK);
    atomic_store(&f.session.header->state, SESSION_RUNNING);
    atomic_store(&f.session.header->clock_ms, 1);
    memset(&f.aggregator, 0, sizeof(f.aggregator));
    assert_int_equal(aggregator_init(&f.aggregator), ERR_OK);
    memset(&f.drain, 0, sizeof(f.drain));
    assert_int_equal(drain_init(&f.drain, &f.session, &f.aggregator, NULL), ERR_OK);
}

static void close_session(void)
{
    drain_release(&f.drain);
    aggregator_release(&f.aggregator);
    session_release(&f.session);
}

static int set_up(void **state)
{
    (void)state;
    f = (struct fixture){0};
    start_program();
    open_session();
    tell("p");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    attach_release(&f.attach);
    map_u64_release(&f.plain.files);
    close_session();
    (void)kill(f.pid, SIGKILL); // it may have ended
    (void)waitpid(f.pid, NULL, 0);
    assert_int_equal(close(f.ask), 0);
    assert_int_equal(close(f.answer), 0);
    return 0;
}

static void succeed(enum err err)
{
    if (err != ERR_OK) {
        fail_msg("%s: %s", err_name(err), f.info.text);
    }
}

static void attach_program(void)
{
    const struct attach_options options = {.plain_modules = &f.plain};
    succeed(attach_open(&f.attach, f.pid, &options, &f.info));
    succeed(attach_begin(&f.attach, f.session.memfd, &f.info));
}

static struct agent_page read_page(void)
{
    struct agent_page page;
    succeed(target_process_read(&f.attach.inject.target, f.attach.page_addr, &page, sizeof(page)));
    return page;
}

static bool is_enabled(void)
{
    struct agent_page page = read_page();
    return atomic_load(&page.enabled) == 1;
}

// Return the allocations that have been counted so far.
static uint64_t counted(void)
{
    for (uint64_t i = 0; i < 4; i++) {
        bool was_busy;
        const uint64_t clock_ms = atomic_fetch_add(&f.session.header->clock_ms, 1) + 1;
        drain_find_dead(&f.drain);
        for (uint64_t k = 0; k < 2; k++) {
            drain_note_time(&f.drain, clock_ms, (2 * clock_ms + k) * 1000000);
        }
        assert_int_equal(drain_pass(&f.drain, clock_ms, false, &was_busy), ERR_OK);
    }
    return f.aggregator.totals.sums.allocations;
}

static const struct attach_hook *hook_of(const char *name)
{
    const char *texts = strbuf_text(&f.attach.hook_texts);
    for (size_t i = 0; i < f.attach.hooks.len; i++) {
        if (strcmp(texts + f.attach.hooks.items[i].name, name) == 0) {
            return f.attach.hooks.items + i;
        }
    }
    return NULL;
}

static void its_functions_are_found(void **state)
{
    (void)state;
    const struct attach_options options = {.plain_modules = &f.plain};
    succeed(attach_open(&f.attach, f.pid, &options, &f.info));
    static const struct {
        const char *name;
        const char *allocator;
    } functions[] = {
        {"malloc", "libc"}, {"free", "libc"}, {"calloc", "libc"},      {"realloc", "libc"},
        {"execve", ""},     {"prctl", ""},    {"_dl_debug_state", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
        const struct attach_hook *hook = hook_of(functions[i].name);
        print_message("%s\n", functions[i].name);
        assert_non_null(hook);
        assert_string_equal(hook->allocator, functions[i].allocator);
        assert_string_equal(hook->reason, "");
        assert_non_null(strstr(strbuf_text(&f.attach.hook_texts) + hook->module,
                               i < 6 ? "libc.so.6" : "ld-linux"));
    }
    assert_null(hook_of("main"));
    assert_string_equal(strbuf_text(&f.attach.executable), PROGRAM);
    static const char words[] = PROGRAM "\0" LATE; // and the end of the last one
    assert_int_equal(f.attach.command_line.len, sizeof(words));
    assert_memory_equal(strbuf_text(&f.attach.command_line), words, sizeof(words));
    assert_non_null(strstr(strbuf_text(&f.attach.allocator), "/libc.so.6"));
    assert_string_equal(strbuf_text(&f.attach.hidden), "");
    assert_string_equal(strbuf_text(&f.attach.unread), "");
    assert_string_equal(strbuf_text(&f.attach.unpatched), "");
    assert_int_equal(f.attach.modules.len, f.attach.nears.len);
    assert_int_equal(f.attach.plan.patches.len, f.attach.hooks.len);
    assert_int_equal(f.plain.files.used_count, 1); // the program itself, beside libc and the loader
    assert_false(f.attach.is_patched);
    assert_int_equal(f.attach.hooked_count, 0);
    assert_false(is_enabled());
    tell("p");
    succeed(attach_end(&f.attach, &f.info)); // nothing to do
}

static void assert_mapping(uint64_t addr, int prot, const char *path)
{
    const struct target_process *target = &f.attach.inject.target;
    const struct target_mapping *mapping = target_process_mapping_at(target, addr);
    assert_non_null(mapping);
    assert_int_equal(mapping->prot, prot);
    assert_non_null(strstr(target_process_path(target, mapping->path), path));
}

// Return the flags that /proc/PID/smaps has of the area at `addr`.
static void read_flags(uint64_t addr, char out[128])
{
    char path[64];
    char line[512];
    bool is_it = false;
    (void)snprintf(path, sizeof(path), "/proc/%d/smaps", (int)f.pid);
    FILE *smaps CLEANUP(stream_closep) = fopen(path, "r");
    assert_non_null(smaps);
    while (fgets(line, sizeof(line), smaps) != NULL) {
        unsigned long long start;
        unsigned long long end;
        if (sscanf(line, "%llx-%llx ", &start, &end) == 2) { // NOLINT(cert-err34-c)
            is_it = start <= addr && addr < end;
        }
        if (is_it && strncmp(line, "VmFlags:", 8) == 0) {
            (void)snprintf(out, 128, "%.120s", line);
            return;
        }
    }
    fail();
}

static void the_agent_is_told_what_it_needs(void **state)
{
    (void)state;
    char flags[128];
    attach_program();
    const struct target_process *target = &f.attach.inject.target;
    const struct agent_page page = read_page();
    succeed(target_process_refresh(&f.attach.inject.target, &f.info));
    assert_int_equal(page.magic, AGENT_MAGIC);
    assert_int_equal(page.pid, f.pid);
    assert_int_equal(page.process_flags, PROCESS_ATTACHED | PROCESS_NOTES_EXIT | PROCESS_SETTINGS);
    assert_true(is_enabled());
    assert_mapping(page.main_stack_top, PROT_READ | PROT_WRITE, "[stack]");
    assert_mapping(page.loader_list, PROT_READ | PROT_WRITE, "");
    const int both = PROT_READ | PROT_WRITE;
    assert_mapping(page.session, both, "/memfd:cairn-session");
    assert_mapping(page.session + SESSION_LANES_OFFSET - 1, both, "/memfd:cairn-session");
    assert_mapping(page.session + SESSION_BYTES - 1, PROT_NONE, "/memfd:cairn-session");
    assert_int_equal(page.words, page.session + SESSION_WORDS_OFFSET);
    assert_mapping(page.words, PROT_NONE, "/memfd:cairn-session");
    assert_mapping(page.words + WORDS_FILE_BYTES - 1, PROT_NONE, "/memfd:cairn-session");
    read_flags(page.session, flags);
    assert_non_null(strstr(flags, " dd")); // not in its core file
    assert_mapping(page.process_page, both, "");
    read_flags(page.process_page, flags);
    assert_non_null(strstr(flags, " wf"));
    assert_mapping(page.attachment, both, "");
    assert_mapping(page.attachment + sizeof(struct agent_attachment) - 1, both, "");
    static struct agent_attachment found;
    succeed(target_process_read(target, page.attachment, &found, sizeof(found)));
    for (size_t i = 0; i < f.attach.plan.patches.len; i++) {
        const struct patch *patch = f.attach.plan.patches.items + i;
        assert_int_equal(found.patches[patch->index].original, patch->trampoline_addr);
        assert_int_equal(found.patches[patch->index].nothrow, patch->nothrow_addr);
    }
    tell("p");
}

static void the_modules_are_listed(void **state)
{
    (void)state;
    attach_program();
    const struct target_process *target = &f.attach.inject.target;
    static struct agent_attachment found;
    succeed(target_process_read(target, read_page().attachment, &found, sizeof(found)));
    const struct agent_module_list *list = &found.lists[0];
    assert_int_equal(atomic_load(&found.list_count), 0);
    assert_int_equal(list->count, target->modules.len + 1);
    unsigned staying = 0;
    unsigned named = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct agent_module *module = list->modules + i;
        const char *path = found.paths + module->path;
        const bool stays = path[0] == '\0' || strcmp(path, "linux-vdso.so.1") == 0 ||
                           strcmp(path, "[cairn]") == 0 || strstr(path, "/libc.so.6") != NULL ||
                           strstr(path, "/ld-linux") != NULL;
        assert_true(module->path < found.paths_bytes);
        assert_int_equal(module->flags & AGENT_MODULE_STAYS, stays ? AGENT_MODULE_STAYS : 0);
        assert_true(module->end > module->start);
        assert_true(module->header_count > 0 && module->headers >= module->start);
        assert_true(module->eh_frame_hdr > module->start && module->eh_frame_hdr < module->end);
        assert_true(i == 0 || list->modules[i - 1].end <= module->start);
        staying += stays;
        named += strstr(path, "/libc.so.6") != NULL || strstr(path, "/ld-linux") != NULL;
    }
    assert_int_equal(staying, 5);
    assert_int_equal(named, 2);
    assert_int_equal(found.paths[0], '\0');
}

static void its_allocations_are_counted_until_the_end(void **state)
{
    (void)state;
    attach_program();
    assert_true(f.attach.is_patched);
    assert_int_equal(f.attach.hooked_count, f.attach.plan.patches.len);
    assert_int_equal(counted(), 0);
    tell("l0");
    const uint64_t loaded = counted();
    assert_true(loaded > 0);
    succeed(attach_end(&f.attach, &f.info));
    assert_false(f.attach.is_patched);
    assert_false(is_enabled());
    tell("u0");
    tell("l0");
    assert_int_equal(counted(), loaded);
    succeed(attach_end(&f.attach, &f.info));
}

static void libraries_that_come_later_are_hooked_once(void **state)
{
    (void)state;
    const struct attach_options options = {.plain_modules = &f.plain};
    attach_program();
    const size_t before = f.attach.hooked_count;
    succeed(attach_late(&f.attach, &options, &f.info)); // nothing has come
    assert_int_equal(f.attach.hooked_count, before);
    assert_int_equal(f.attach.hooks.len, 0);
    tell("l0");
    const uint64_t loaded = counted();
    succeed(attach_late(&f.attach, &options, &f.info));
    const size_t after = f.attach.hooked_count;
    assert_int_equal(after - before, f.attach.hooks.len);
    assert_non_null(hook_of("je_malloc"));
    assert_string_equal(strbuf_text(&f.attach.hook_texts) + hook_of("je_malloc")->module, LATE);
    assert_int_equal(f.attach.inject.note.patch_count, after);
    const uint32_t nears = f.attach.inject.note.near_count;
    static struct agent_attachment found;
    succeed(target_process_read(&f.attach.inject.target, read_page().attachment, &found,
                                sizeof(found)));
    for (size_t i = 0; i < after; i++) {
        assert_true(found.patches[i].original != 0);
    }
    assert_int_equal(found.patches[after].original, 0);
    tell("r0");
    assert_int_equal(counted() - loaded, ROUND);
    tell("r0");
    assert_int_equal(counted() - loaded, 2 * ROUND);
    succeed(attach_late(&f.attach, &options, &f.info));
    assert_int_equal(f.attach.hooked_count, after);
    assert_int_equal(f.attach.hooks.len, 0);
    // The same library once more has the places and the memory that it had.
    tell("u0");
    tell("l0");
    const uint64_t reloaded = counted();
    succeed(attach_late(&f.attach, &options, &f.info));
    assert_int_equal(f.attach.inject.note.patch_count, after);
    assert_int_equal(f.attach.inject.note.near_count, nears);
    tell("r0");
    assert_int_equal(counted() - reloaded, ROUND);
    succeed(attach_end(&f.attach, &f.info));
    tell("r0");
    assert_int_equal(counted() - reloaded, ROUND);
}

// What the first session reserved and never used is given back.
static void a_second_attach_takes_the_first_session_away(void **state)
{
    (void)state;
    attach_program();
    tell("l0");
    assert_true(counted() > 0);
    const struct agent_page first = read_page();
    const uint64_t image_addr = f.attach.inject.image_addr;
    succeed(attach_end(&f.attach, &f.info));
    attach_release(&f.attach);
    close_session();
    open_session();
    attach_program();
    assert_int_equal(f.attach.inject.image_addr, image_addr);
    succeed(target_process_refresh(&f.attach.inject.target, &f.info));
    const struct target_process *target = &f.attach.inject.target;
    const uint64_t lanes = first.session + SESSION_LANES_OFFSET;
    assert_mapping(first.session, PROT_READ | PROT_WRITE, "/memfd:cairn-session");
    assert_mapping(lanes, PROT_READ | PROT_WRITE, "/memfd:cairn-session"); // of its one thread
    assert_null(target_process_mapping_at(target, lanes + LANE_STRIDE));
    assert_null(target_process_mapping_at(target, first.session + SESSION_BYTES - 1));
    const struct agent_page second = read_page();
    assert_int_not_equal(second.session, first.session);
    assert_int_not_equal(second.attachment, first.attachment);
    assert_mapping(second.session + SESSION_BYTES - 1, PROT_NONE, "/memfd:cairn-session");
    assert_int_equal(counted(), 0);
    tell("u0");
    tell("l0");
    assert_true(counted() > 0);
}

static void functions_of_the_user_s_choice_must_exist(void **state)
{
    (void)state;
    CLEANUP(allocator_names_release) struct allocator_name_vec names = {0};
    const struct allocator_name name = {.name = strdup("my_alloc")};
    assert_int_equal(allocator_name_vec_push(&names, name), ERR_OK);
    struct attach_options options = {.names = &names};
    assert_int_equal(attach_open(&f.attach, f.pid, &options, &f.info), ERR_NOT_FOUND);
    char expected[64];
    (void)snprintf(expected, sizeof(expected), "process %d has no function 'my_alloc'", (int)f.pid);
    assert_string_equal(f.info.text, expected);
    attach_release(&f.attach);
    options.may_lack_names = true;
    succeed(attach_open(&f.attach, f.pid, &options, &f.info));
}

static void a_program_may_end_between_any_two_steps(void **state)
{
    (void)state;
    const struct attach_options options = {.plain_modules = &f.plain};
    succeed(attach_open(&f.attach, f.pid, &options, &f.info));
    assert_int_equal(kill(f.pid, SIGKILL), 0);
    assert_int_equal(waitpid(f.pid, NULL, 0), f.pid);
    assert_int_equal(attach_begin(&f.attach, f.session.memfd, &f.info), ERR_NOT_FOUND);
    assert_int_equal(attach_late(&f.attach, &options, &f.info), ERR_NOT_FOUND);
    succeed(attach_end(&f.attach, &f.info));
    succeed(attach_end_copy(f.pid, &f.info));
    struct attach copy;
    assert_int_equal(attach_late_copy(&copy, f.pid, &options, &f.info), ERR_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(its_functions_are_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_agent_is_told_what_it_needs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_modules_are_listed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(its_allocations_are_counted_until_the_end, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(libraries_that_come_later_are_hooked_once, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_second_attach_takes_the_first_session_away, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(functions_of_the_user_s_choice_must_exist, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_program_may_end_between_any_two_steps, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
