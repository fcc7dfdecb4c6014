// SPDX-License-Identifier: MIT
// start: initializes the preload library, when the loader runs constructors, before main.
//
// An earlier allocation may have caused much of this already: every step can be repeated. At the
// end nothing needs saving: the recorder has events as soon as they are published, and the hooks
// work until the last instruction. Only the time is noted, so that the recorder knows how long the
// process's heap existed. Context: T, one thread.
#include <errno.h>
#include <link.h>
#include <stddef.h>

#include "base/compiler.h"
#include "session/python_versions.h"
#include "target/preload/exports/announce.h"
#include "target/preload/exports/program_api.h"
#include "target/preload/process/process.h"
#include "target/preload/process/thread_exit.h"
#include "target/preload/python/python_stack.h"
#include "target/preload/real/definitions.h"
#include "target/preload/real/environment.h"
#include "target/preload/real/real_functions.h"
#include "target/preload/real/real_mappings.h"
#include "target/preload/real/real_process.h"
#include "target/preload/record/process_texts.h"
#include "target/preload/record/record_exit.h"
#include "target/unwind/unwind.h"

// Constructors that ran before ours may have begun threads, which may load and unload by now. Then
// the functions were looked up before those threads, because beginning a thread allocates. But an
// executable with a malloc of its own bypasses the hooks.
static int resolve(struct dl_phdr_info *unused, size_t size, void *context)
{
    (void)unused;
    (void)size;
    (void)context;
    real_functions_resolve();
    real_mappings_resolve();
    real_process_resolve();
    return 1;
}

// NOLINTBEGIN(readability-identifier-naming): libc's and the compiler's names
// libc's at_quick_exit, whose own object is in libc_nonshared.a. Weak, because musl lacks it.
extern int __cxa_at_quick_exit(void (*handler)(void *), void *module) __attribute__((weak));
extern void *__dso_handle; // of this library
// NOLINTEND(readability-identifier-naming)

static void finish_quickly(void *unused)
{
    (void)unused;
    record_own_exit();
}

// quick_exit runs its handlers in reverse order: the first one to be registered is the last to run.
static void prepare_quick_exit(void)
{
    if (__cxa_at_quick_exit != NULL) {
        (void)__cxa_at_quick_exit(finish_quickly, &__dso_handle); // fails without memory
    }
}

// Return the version of CPython as python_versions.h tells it, 0 if there is none.
static uint32_t python_version(void)
{
    uint32_t version = 0;
    for (size_t i = 0; i < ARRAY_LEN(python_versions) &&
                       definition_first(python_versions[i].function).address != 0;
         i++) {
        version = python_versions[i].version;
    }
    return version;
}

__attribute__((constructor(101))) static void start(void)
{
    const int saved_errno = errno;
    (void)dl_iterate_phdr(resolve, NULL); // nothing but its lock; returns what `resolve` does
    thread_exit_prepare();
    if (real_functions_are_hooked()) { // else this may be a late dlopen of the library itself
        unwind_modules_stay();
        prepare_quick_exit();
    }
    unwind_modules_refresh();
    if (process_session() != NULL || process_join()) {
        process_texts_send();
    }
    struct session_header *session = process_mapping()->header;
    if (session != NULL && (session->flags & SESSION_PYTHON) != 0) {
        python_stack_begin(session, definition_first_variable("_PyRuntime").address,
                           definition_first_variable("Py_Version").address, python_version());
    }
    if (session != NULL && (session->flags & SESSION_FOLLOW_CHILDREN) == 0) {
        environment_strip();
    }
    announce_api(&cairn_api_v1);
    errno = saved_errno;
}

__attribute__((destructor)) static void finish(void)
{
    record_exit();
}
