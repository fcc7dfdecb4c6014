// SPDX-License-Identifier: MIT
// The loader's list of a child, which is the same program: as the loader has made it, and as it is
// while the loader works.
#include "inject/process/loader_list.h"

#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "inject/process/target_reading.h"

// The list of this process. _r_debug may be a copy of it (psABI, copy relocations).
static const struct r_debug *own_list(void)
{
    const ElfW(Dyn) *entry = _DYNAMIC;
    while (entry->d_tag != DT_DEBUG) {
        assert_int_not_equal(entry->d_tag, DT_NULL);
        entry++;
    }
    return (const struct r_debug *)entry->d_un.d_ptr;
}

static void write_list(const struct target_process *target, const struct r_debug *list)
{
    const uint64_t addr = (uint64_t)(uintptr_t)own_list();
    assert_int_equal(target_process_write(target, addr, list, sizeof(*list)), ERR_OK);
}

static void the_list_is_complete_when_the_loader_says_so(void **state)
{
    (void)state;
    int pipe_fds[2];
    assert_int_equal(pipe(pipe_fds), 0);
    const pid_t child = fork();
    if (child == 0) {
        char byte;
        (void)close(pipe_fds[1]);
        _exit(read(pipe_fds[0], &byte, 1) == 0 ? 0 : 1);
    }
    struct err_info info = {0};
    struct target_process target = {0};
    assert_int_equal(target_process_open(&target, child, &kernel_calls_real, &info), ERR_OK);
    assert_int_equal(loader_list_find(&target), (uint64_t)(uintptr_t)own_list());
    assert_true(loader_list_is_complete(&target));

    const struct r_debug done = *own_list();
    struct r_debug cases[] = {done, done, done, done};
    cases[0].r_state = RT_ADD;    // libraries are being mapped
    cases[1].r_state = RT_DELETE; // or unmapped
    cases[2].r_map = NULL;        // musl: not yet written
    cases[3].r_version = 0;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        write_list(&target, &cases[i]);
        assert_false(loader_list_is_complete(&target));
    }
    write_list(&target, &done);
    assert_true(loader_list_is_complete(&target));

    const uint64_t own_code = (uint64_t)(uintptr_t)own_list;
    struct target_module *own = NULL;
    for (size_t i = 0; i < target.modules.len; i++) {
        struct target_module *module = &target.modules.items[i];
        const bool is_own = module->start <= own_code && own_code < module->end;
        assert_int_equal(loader_list_is_program(&target, module), is_own);
        own = is_own ? module : own;
    }
    assert_non_null(own);
    own->dynamic = 0; // it has no place for the list
    size_t with_interpreter = 0;
    for (size_t i = 0; i < target.modules.len; i++) {
        const struct target_module *module = &target.modules.items[i];
        assert_int_equal(loader_list_is_program(&target, module), module->has_interpreter);
        with_interpreter += module->has_interpreter;
    }
    assert_true(with_interpreter > 1); // libc can be executed

    for (size_t i = 0; i < target.modules.len; i++) { // as of a static program
        target.modules.items[i].has_interpreter = false;
    }
    assert_int_equal(loader_list_find(&target), 0);
    assert_true(loader_list_is_complete(&target));

    for (size_t i = 0; i < target.modules.len; i++) { // as in the middle of an exec
        target.modules.items[i].is_vdso = true;
    }
    assert_false(loader_list_is_complete(&target));
    target.modules.len = 0;
    assert_false(loader_list_is_complete(&target));
    target_process_close(&target);
    (void)close(pipe_fds[0]);
    (void)close(pipe_fds[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_list_is_complete_when_the_loader_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
