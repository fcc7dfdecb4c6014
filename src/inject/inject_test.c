// SPDX-License-Identifier: MIT
// inject: a forked child gets an image, near blocks and a jump, makes system calls, and is opened
// again by this process and by another one.
#include "inject/inject.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "host/memory/page_size.h"
#include "host/os/file.h"
#include "inject/agent_image.h"
#include "inject/code/patch_plan.h"
#include "inject/process/target_reading.h"
#include "inject/process/threads/remote_code.h"
#include "session/agent_page.h"

enum {
    OLD = 7, // what the function returns
    NEW = 42,
    SLOTS = REMOTE_CODE_BYTES_MIN / REMOTE_CODE_BYTES_MAX,
};
#define REACH ((uint64_t)1 << 31)

// Does one thing in the first five bytes, which a jump replaces.
uint32_t inject_test_victim(void);
__asm__(".text\n.balign 64\n.globl inject_test_victim\n.type inject_test_victim, @function\n"
        "inject_test_victim:\n\tmovl $7, %eax\n\tret\n\t.balign 64\n");

struct child {
    pid_t pid;
    int ask;
    int answer;
};

struct fixture {
    struct child child;
    struct strbuf agent;
    struct inject inject;
    struct err_info info;
};
static struct fixture f;

// Answer each byte by what the function returns.
static struct child start_child(void)
{
    int ask[2];
    int answer[2];
    assert_int_equal(pipe(ask), 0);
    assert_int_equal(pipe(answer), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        char byte;
        while (read(ask[0], &byte, 1) == 1) {
            const char got = (char)inject_test_victim();
            (void)!write(answer[1], &got, 1);
        }
        _exit(1); // an interrupted call has shown
    }
    assert_true(pid > 0);
    assert_int_equal(close(ask[0]), 0);
    assert_int_equal(close(answer[1]), 0);
    return (struct child){.pid = pid, .ask = ask[1], .answer = answer[0]};
}

static void end_child(struct child *child)
{
    if (child->pid > 0) {
        assert_int_equal(kill(child->pid, SIGKILL), 0);
        assert_int_equal(waitpid(child->pid, NULL, 0), child->pid);
        assert_int_equal(close(child->ask), 0);
        assert_int_equal(close(child->answer), 0);
    }
    child->pid = 0;
}

static int child_says(const struct child *child)
{
    char got = 0;
    assert_int_equal(write(child->ask, "x", 1), 1);
    assert_int_equal(read(child->answer, &got, 1), 1);
    return got;
}

static int set_up(void **state)
{
    (void)state;
    f = (struct fixture){.child = start_child()};
    assert_int_equal(file_read(AGENT_FILE, 16 << 20, &f.agent, NULL), ERR_OK);
    assert_int_equal(inject_open(&f.inject, f.child.pid, NULL, &f.info), ERR_OK);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    inject_close(&f.inject);
    strbuf_release(&f.agent);
    end_child(&f.child);
    return 0;
}

static void open_again(const struct inject_options *options)
{
    inject_close(&f.inject);
    assert_int_equal(inject_open(&f.inject, f.child.pid, options, &f.info), ERR_OK);
}

static struct bytes agent(void)
{
    return strbuf_bytes(&f.agent);
}

// A near block for the module of the function.
static struct inject_near near_of(uint64_t bytes, uint64_t key)
{
    for (size_t i = 0; i < f.inject.target.modules.len; i++) {
        const struct target_module *module = f.inject.target.modules.items + i;
        if ((uint64_t)inject_test_victim - module->start < module->end - module->start) {
            return (struct inject_near){.module_start = module->start,
                                        .module_end = module->end,
                                        .bytes = bytes,
                                        .key = key};
        }
    }
    fail();
    return (struct inject_near){0};
}

static struct inject_near map_one(uint64_t bytes, uint64_t key)
{
    struct inject_near near = near_of(bytes, key);
    const enum err err = inject_map(&f.inject, agent(), &near, 1, &f.info);
    if (err != ERR_OK) {
        fail_msg("%s", f.info.text);
    }
    return near;
}

static void assert_mapped(uint64_t start, uint64_t end, int prot)
{
    for (uint64_t at = start; at < end; at += page_bytes()) {
        const struct target_mapping *mapping = target_process_mapping_at(&f.inject.target, at);
        assert_non_null(mapping);
        assert_int_equal(mapping->prot, prot);
        assert_int_equal(mapping->inode, 0);
    }
}

static void assert_in_reach(uint64_t start, uint64_t end, const struct inject_near *near)
{
    assert_true(start < near->module_start ? near->module_end - start < REACH
                                           : end - near->module_start < REACH);
}

static void the_image_and_the_blocks_are_in_the_process(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {1, 4096, 4097, 20000};
    struct inject_near nears[ARRAY_LEN(sizes)];
    CLEANUP(agent_image_release) struct agent_image image = {0};
    assert_int_equal(agent_image_init(&image, agent(), page_bytes(), NULL), ERR_OK);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        nears[i] = near_of(sizes[i], i);
    }
    assert_int_equal(inject_symbol(&f.inject, agent(), AGENT_PAGE_SYMBOL), 0); // not mapped
    assert_int_equal(inject_map(&f.inject, agent(), nears, ARRAY_LEN(nears), &f.info), ERR_OK);
    const uint64_t at = f.inject.image_addr;
    agent_image_relocate(&image, at);
    assert_in_reach(at, at + image.span, &nears[0]);
    for (size_t i = 0; i < image.segment_count; i++) {
        const struct agent_segment *segment = image.segments + i;
        static uint8_t found[1 << 20];
        const size_t len = segment->end - segment->start;
        assert_true(len <= sizeof(found));
        assert_mapped(at + segment->start, at + segment->end, segment->prot);
        assert_int_equal(target_process_read(&f.inject.target, at + segment->start, found, len),
                         ERR_OK);
        assert_memory_equal(found, image.memory + segment->start, len);
    }
    for (size_t i = 0; i < ARRAY_LEN(nears); i++) {
        const uint64_t end = nears[i].addr + (sizes[i] + 4095) / 4096 * 4096;
        assert_mapped(nears[i].addr, end, PROT_READ | PROT_EXEC);
        assert_in_reach(nears[i].addr, end, &nears[i]);
        for (size_t k = 0; k < i; k++) {
            assert_true(nears[k].addr >= end || nears[k].addr + sizes[k] <= nears[i].addr);
        }
    }
    assert_int_equal(inject_symbol(&f.inject, agent(), AGENT_PAGE_SYMBOL),
                     at + agent_image_symbol(agent(), AGENT_PAGE_SYMBOL));
    assert_int_equal(inject_symbol(&f.inject, agent(), "no symbol"), 0);
    assert_int_equal(child_says(&f.child), OLD);
}

// What an earlier attach has mapped is used again if it is the same.
static void equal_memory_is_used_again(void **state)
{
    (void)state;
    const struct inject_near first = map_one(5000, 11);
    const uint64_t image_addr = f.inject.image_addr;
    open_again(NULL);
    assert_int_equal(f.inject.note.near_count, 1);
    assert_int_equal(map_one(5000, 11).addr, first.addr);
    assert_int_equal(map_one(8192, 11).addr, first.addr); // as large as its pages
    assert_int_equal(f.inject.image_addr, image_addr);
    assert_int_equal(f.inject.note.near_count, 1);
    assert_int_not_equal(map_one(8193, 11).addr, first.addr);
    assert_int_not_equal(map_one(5000, 12).addr, first.addr);
    struct inject_near other = near_of(5000, 11);
    other.module_start += page_bytes();
    assert_int_equal(inject_map(&f.inject, agent(), &other, 1, &f.info), ERR_OK);
    assert_int_not_equal(other.addr, first.addr);
    assert_int_equal(f.inject.note.near_count, 4);
    open_again(NULL);
    assert_int_equal(f.inject.note.near_count, 4);
    // The program has taken the block away, or changed its protection.
    struct remote_call calls[] = {
        {.number = SYS_mprotect, .arguments = {first.addr, 4096, PROT_READ}},
        {.number = SYS_munmap, .arguments = {other.addr + 4096, 4096}},
    };
    assert_int_equal(remote_calls_run(&f.inject.calls, calls, ARRAY_LEN(calls), &f.info), ERR_OK);
    assert_int_equal(calls[0].result, 0);
    assert_int_equal(target_process_refresh(&f.inject.target, &f.info), ERR_OK);
    assert_int_not_equal(map_one(5000, 11).addr, first.addr);
}

static void an_image_that_was_changed_is_not_used_again(void **state)
{
    (void)state;
    CLEANUP(agent_image_release) struct agent_image image = {0};
    assert_int_equal(agent_image_init(&image, agent(), page_bytes(), NULL), ERR_OK);
    (void)map_one(100, 1);
    const uint64_t first = f.inject.image_addr;
    for (size_t i = 0; i < image.segment_count; i++) { // its data may change
        if ((image.segments[i].prot & PROT_WRITE) != 0) {
            assert_int_equal(
                target_process_write(&f.inject.target, first + image.segments[i].end - 1, "x", 1),
                ERR_OK);
        }
    }
    open_again(NULL);
    const struct inject_near near = map_one(100, 1);
    assert_int_equal(f.inject.image_addr, first);
    for (size_t i = 0; i < image.segment_count; i++) {
        if ((image.segments[i].prot & PROT_EXEC) != 0) {
            assert_int_equal(
                target_process_write(&f.inject.target, first + image.segments[i].end - 1, "x", 1),
                ERR_OK);
        }
    }
    open_again(NULL);
    assert_int_not_equal(map_one(100, 1).addr, near.addr); // its stubs go to the other image
    assert_int_not_equal(f.inject.image_addr, first);
}

// Two attaches of 40 blocks are more than there is room for in the note.
static void blocks_have_a_bound(void **state)
{
    (void)state;
    enum {
        BLOCKS = 40 // more than one run maps
    };
    struct inject_near nears[BLOCKS];
    for (uint64_t i = 0; i < BLOCKS; i++) {
        nears[i] = near_of(10, i);
    }
    assert_int_equal(inject_map(&f.inject, agent(), nears, BLOCKS, &f.info), ERR_OK);
    for (size_t i = 0; i < BLOCKS; i++) {
        for (size_t k = 0; k < i; k++) {
            assert_int_not_equal(nears[i].addr, nears[k].addr);
        }
    }
    for (uint64_t i = 0; i < BLOCKS; i++) {
        nears[i] = near_of(10, BLOCKS + i);
    }
    const size_t room = INJECT_NEARS_MAX - BLOCKS;
    assert_int_equal(inject_map(&f.inject, agent(), nears, room, &f.info), ERR_OK);
    assert_int_equal(f.inject.note.near_count, INJECT_NEARS_MAX);
    assert_int_equal(inject_map(&f.inject, agent(), nears + room, 1, &f.info), ERR_LIMIT);
    assert_non_null(strstr(f.info.text, "has 64 blocks of earlier attaches"));
}

// A plan that lets the function jump to a block, where another value is returned.
static void plan_of(struct patch_plan *plan, uint64_t block_addr)
{
    static uint8_t code[] = {0xb8, NEW, 0, 0, 0, 0xc3}; // mov $42, %eax; ret
    const uint64_t entry = (uint64_t)inject_test_victim;
    const int32_t offset = (int32_t)(block_addr - entry - PATCH_BYTES);
    struct patch patch = {
        .entry_addr = entry, .jump_addr = entry, .name = "victim", .new_bytes = {0xe9}};
    memcpy(patch.old_bytes, (const void *)entry, PATCH_BYTES);
    memcpy(patch.new_bytes + 1, &offset, sizeof(offset));
    const struct near_block block = {.addr = block_addr, .bytes = code, .len = sizeof(code)};
    *plan = (struct patch_plan){0};
    assert_int_equal(patch_vec_push(&plan->patches, patch), ERR_OK);
    assert_int_equal(near_block_vec_push(&plan->blocks, block), ERR_OK);
}

static void release_plan(struct patch_plan *plan)
{
    patch_vec_release(&plan->patches);
    near_block_vec_release(&plan->blocks);
}

static void patch_victim(struct inject *inject, uint64_t block_addr)
{
    CLEANUP(release_plan) struct patch_plan plan;
    plan_of(&plan, block_addr);
    const enum err err = inject_patch(inject, &plan, &f.info);
    if (err != ERR_OK) {
        fail_msg("%s", f.info.text);
    }
}

static void a_jump_is_written_and_taken_back(void **state)
{
    (void)state;
    const struct inject_near near = map_one(64, 1);
    assert_int_equal(inject_unpatch(&f.inject, &f.info), ERR_OK); // nothing to do
    for (int round = 0; round < 2; round++) {
        patch_victim(&f.inject, near.addr);
        assert_int_equal(child_says(&f.child), NEW);
        assert_int_equal(f.inject.note.patch_count, 1);
        assert_int_equal(f.inject.note.owner_pid, getpid());
        assert_true(f.inject.stop.attempts >= 1);
        assert_int_equal(inject_unpatch(&f.inject, &f.info), ERR_OK);
        assert_int_equal(child_says(&f.child), OLD);
        assert_int_equal(f.inject.note.patch_count, 0);
        assert_int_equal(f.inject.note.owner_pid, 0);
    }
    patch_victim(&f.inject, near.addr);
    open_again(NULL); // it restores what is left behind
    assert_int_equal(child_says(&f.child), OLD);
    assert_int_equal(f.inject.note.patch_count, 0);
}

static void jumps_are_kept_on_request(void **state)
{
    (void)state;
    const struct inject_options keeping = {.keeps_patches = true};
    struct inject again;
    assert_int_equal(inject_open(&again, f.child.pid, &keeping, &f.info), ERR_NOT_FOUND);
    assert_non_null(strstr(f.info.text, "has no functions that cairn has hooked"));
    const struct inject_near near = map_one(64, 1);
    patch_victim(&f.inject, near.addr);
    const uint64_t image_addr = f.inject.image_addr;
    open_again(&keeping);
    assert_int_equal(child_says(&f.child), NEW);
    assert_int_equal(f.inject.image_addr, image_addr);
    assert_int_equal(f.inject.note.patch_count, 1);
    assert_int_equal(inject_unpatch(&f.inject, &f.info), ERR_OK);
    assert_int_equal(child_says(&f.child), OLD);
}

// Another process has the jumps written, then it is killed.
static void a_second_recorder_is_refused(void **state)
{
    (void)state;
    int ready[2];
    char byte;
    (void)map_one(64, 1);
    inject_close(&f.inject);
    assert_int_equal(pipe(ready), 0);
    const pid_t other = fork();
    if (other == 0) {
        struct inject theirs;
        const struct inject_options options = {.stop = {.limit_ms = 10000}};
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (inject_open(&theirs, f.child.pid, &options, &f.info) == ERR_OK) {
            patch_victim(&theirs, theirs.note.nears[0].addr);
            (void)!write(ready[1], "x", 1);
        }
        (void)pause();
        _exit(0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(child_says(&f.child), NEW);
    assert_int_equal(inject_open(&f.inject, f.child.pid, NULL, &f.info), ERR_PERMISSION);
    CLEANUP(strbuf_release) struct strbuf expected = {0};
    strbuf_printf(&expected, "process %d is already recorded by cairn (process %d); end that first",
                  (int)f.child.pid, (int)other);
    assert_string_equal(f.info.text, strbuf_text(&expected));
    assert_int_equal(kill(other, SIGKILL), 0);
    assert_int_equal(waitpid(other, NULL, 0), other);
    const struct inject_options keeping = {.keeps_patches = true};
    assert_int_equal(inject_open(&f.inject, f.child.pid, &keeping, &f.info), ERR_NOT_FOUND);
    assert_int_equal(child_says(&f.child), NEW); // not ours to keep
    assert_int_equal(inject_open(&f.inject, f.child.pid, NULL, &f.info), ERR_OK);
    assert_int_equal(child_says(&f.child), OLD);
    assert_int_equal(close(ready[0]), 0);
    assert_int_equal(close(ready[1]), 0);
}

static void a_plan_that_does_not_fit_changes_nothing(void **state)
{
    (void)state;
    const struct inject_near near = map_one(64, 1);
    CLEANUP(release_plan) struct patch_plan plan;
    plan_of(&plan, near.addr);
    plan.blocks.items[0].addr += 16;
    assert_int_equal(inject_patch(&f.inject, &plan, &f.info), ERR_INVALID);
    assert_string_equal(f.info.text, "the plan has a block that inject_map did not map");
    plan.blocks.items[0].addr -= 16;
    static uint8_t large[4097];
    const struct near_block block = plan.blocks.items[0];
    plan.blocks.items[0] = (struct near_block){near.addr, large, sizeof(large)};
    assert_int_equal(inject_patch(&f.inject, &plan, &f.info), ERR_INVALID);
    plan.blocks.items[0] = block;
    plan.first_index = INJECT_PATCHES_MAX;
    assert_int_equal(inject_patch(&f.inject, &plan, &f.info), ERR_LIMIT);
    assert_string_equal(f.info.text, "321 allocation functions are too many, the limit is 320");
    plan.first_index = 0;
    plan.patches.items[0].old_bytes[4] ^= 1;
    assert_int_equal(inject_patch(&f.inject, &plan, &f.info), ERR_CORRUPT);
    assert_non_null(strstr(f.info.text, "victim of process "));
    assert_int_equal(f.inject.note.patch_count, 0);
    assert_int_equal(child_says(&f.child), OLD);
    plan.patches.items[0].old_bytes[4] ^= 1;
    plan.first_index = INJECT_PATCHES_MAX - 1;
    assert_int_equal(inject_patch(&f.inject, &plan, &f.info), ERR_OK);
    assert_int_equal(f.inject.note.patch_count, INJECT_PATCHES_MAX);
    assert_int_equal(child_says(&f.child), NEW);
    // Threads may be in the block: it must not change any more.
    uint8_t other[] = {0xb8, NEW + 1, 0, 0, 0, 0xc3};
    plan.blocks.items[0].bytes = other;
    assert_int_equal(inject_patch(&f.inject, &plan, &f.info), ERR_INVALID);
    assert_non_null(strstr(f.info.text, "has other trampolines of cairn at 0x"));
    assert_int_equal(inject_unpatch(&f.inject, &f.info), ERR_OK);
    assert_int_equal(child_says(&f.child), OLD);
}

static void calls_are_made_in_their_order(void **state)
{
    (void)state;
    struct remote_calls *calls = &f.inject.calls;
    assert_int_equal(remote_calls_note(calls), 0);
    struct remote_call list[REMOTE_CALLS_MAX + 1];
    assert_int_equal(remote_calls_run(calls, list, REMOTE_CALLS_MAX + 1, &f.info), ERR_LIMIT);
    assert_string_equal(f.info.text, "33 system calls are too many for one run");
    // A child that sleeps in read(2) is woken for each run, past the last slot.
    for (unsigned run = 0; run < SLOTS + 3; run++) {
        for (size_t i = 0; i < REMOTE_CALLS_MAX; i++) {
            list[i] = i % 2 == 0
                          ? (struct remote_call){.number = SYS_getpid}
                          : (struct remote_call){.number = SYS_close, .arguments = {(uint64_t)-1}};
        }
        assert_int_equal(remote_calls_run(calls, list, REMOTE_CALLS_MAX, &f.info), ERR_OK);
        for (size_t i = 0; i < REMOTE_CALLS_MAX; i++) {
            assert_int_equal(list[i].result, i % 2 == 0 ? f.child.pid : -EBADF);
        }
        assert_int_equal(calls->next_slot, run < SLOTS ? run + 1 : run - SLOTS + 1);
        assert_int_equal(child_says(&f.child), OLD);
    }
    assert_int_equal(remote_calls_note(calls),
                     calls->page + remote_code_bytes() + REMOTE_LIST_BYTES);
    assert_true(calls->longest.held_ns > 0);
    assert_int_equal(target_process_refresh(&f.inject.target, &f.info), ERR_OK);
    assert_mapped(calls->page, calls->page + remote_code_bytes(), PROT_READ | PROT_EXEC);
    assert_mapped(calls->page + remote_code_bytes(), calls->page + remote_page_bytes(),
                  PROT_READ | PROT_WRITE);
}

// All six arguments arrive, and what they name is the child's.
static void a_call_has_its_arguments(void **state)
{
    (void)state;
    struct remote_call map = {.number = SYS_mmap,
                              .arguments = {0, 8192, PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS, (uint64_t)-1, 0}};
    assert_int_equal(remote_calls_run(&f.inject.calls, &map, 1, &f.info), ERR_OK);
    assert_true(map.result > 0);
    struct remote_call cut = {.number = SYS_munmap,
                              .arguments = {(uint64_t)map.result + 4096, 4096}};
    assert_int_equal(remote_calls_run(&f.inject.calls, &cut, 1, &f.info), ERR_OK);
    assert_int_equal(cut.result, 0);
    assert_int_equal(target_process_write(&f.inject.target, (uint64_t)map.result + 4095, "x", 1),
                     ERR_OK);
    assert_int_equal(target_process_write(&f.inject.target, (uint64_t)map.result + 4096, "x", 1),
                     ERR_NOT_FOUND);
}

static void a_stopped_process_makes_calls_and_stays_stopped(void **state)
{
    (void)state;
    siginfo_t change = {0};
    struct remote_call call = {.number = SYS_getpid};
    assert_int_equal(kill(f.child.pid, SIGSTOP), 0);
    assert_int_equal(waitid(P_PID, (id_t)f.child.pid, &change, WSTOPPED), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(remote_calls_run(&f.inject.calls, &call, 1, &f.info), ERR_OK);
        assert_int_equal(call.result, f.child.pid);
    }
    assert_int_equal(kill(f.child.pid, SIGCONT), 0);
    assert_int_equal(child_says(&f.child), OLD);
}

static void memory_that_the_kernel_refuses_is_told(void **state)
{
    (void)state;
    struct remote_call call = {.number = SYS_getpid};
    assert_int_equal(remote_calls_run(&f.inject.calls, &call, 1, &f.info), ERR_OK);
    const struct rlimit none = {0, RLIM_INFINITY};
    assert_int_equal(prlimit(f.child.pid, RLIMIT_AS, &none, NULL), 0);
    struct inject_near near = near_of(64, 1);
    assert_int_not_equal(inject_map(&f.inject, agent(), &near, 1, &f.info), ERR_OK);
    CLEANUP(strbuf_release) struct strbuf expected = {0};
    strbuf_printf(&expected,
                  "process %d cannot map memory for cairn's agent within its limit of 0 KiB of "
                  "addresses (ulimit -v): Cannot allocate memory",
                  (int)f.child.pid);
    assert_string_equal(f.info.text, strbuf_text(&expected));
    assert_int_equal(f.inject.image_addr, 0);
    assert_int_equal(child_says(&f.child), OLD);
}

static void a_process_that_has_ended_needs_nothing(void **state)
{
    (void)state;
    const struct inject_near near = map_one(64, 1);
    patch_victim(&f.inject, near.addr);
    const pid_t pid = f.child.pid;
    end_child(&f.child);
    assert_int_equal(inject_unpatch(&f.inject, &f.info), ERR_OK);
    struct remote_call call = {.number = SYS_getpid};
    assert_int_equal(remote_calls_run(&f.inject.calls, &call, 1, &f.info), ERR_NOT_FOUND);
    struct inject again;
    assert_int_equal(inject_open(&again, pid, NULL, &f.info), ERR_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_image_and_the_blocks_are_in_the_process, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(equal_memory_is_used_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_image_that_was_changed_is_not_used_again, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(blocks_have_a_bound, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_jump_is_written_and_taken_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(jumps_are_kept_on_request, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_second_recorder_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_plan_that_does_not_fit_changes_nothing, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(calls_are_made_in_their_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_call_has_its_arguments, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_stopped_process_makes_calls_and_stays_stopped, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(memory_that_the_kernel_refuses_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_process_that_has_ended_needs_nothing, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
