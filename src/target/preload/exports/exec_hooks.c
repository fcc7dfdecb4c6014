// SPDX-License-Identifier: MIT
// exec_hooks: the exported functions by which a program executes another one.
//
// Each finds the file to execute, as the function itself will, makes a plan (exec_plan.h) and calls
// the real function with the plan's environment. Variants that take their arguments one by one, and
// variants that take the environment from `environ`, are defined in terms of the others, as in
// libc. libc also executes programs by internal calls (system, popen, wordexp). These are shells
// with the environment of the process, and the shells' own execs pass through these hooks.
//
// Context: T, any caller, see exec_plan.h. errno is the real function's.
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "base/compiler.h"
#include "base/page_alloc.h"
#include "base/sys.h"
#include "target/preload/exports/exec_plan.h"
#include "target/preload/process/exec_path.h"
#include "target/preload/real/real_process.h"
#include "target/preload/record/record_exit.h"

#define ARGUMENTS_ON_STACK 64u

// Own prototypes: libc's have other types for the same arguments.
extern char **environ;
#define X(name, result, parameters, arguments, answer) EXPORT result name parameters;
PROCESS_FUNCTIONS(X)
#undef X
EXPORT int execv(const char *path, char *const *argv);
EXPORT int execvp(const char *name, char *const *argv);
EXPORT int execl(const char *path, const char *first, ...);
EXPORT int execlp(const char *name, const char *first, ...);
EXPORT int execle(const char *path, const char *first, ...);

static void begin(struct exec_plan *plan, const char *path, char *const *variables)
{
    exec_plan_make(plan, path, variables);
    exec_plan_announce(plan);
    record_exec();
}

// End the plan after a call that returns only to fail.
static int failed(struct exec_plan *plan, int result)
{
    exec_plan_end(plan, true);
    return result;
}

EXPORT int execve(const char *path, char *const *argv, char *const *environment)
{
    struct exec_plan plan;
    begin(&plan, path, environment);
    return failed(&plan, g_real_process.execve(path, argv, plan.environment.variables));
}

EXPORT int execv(const char *path, char *const *argv)
{
    return execve(path, argv, environ);
}

// Return the path at which `name` will be found; NULL if it will not, or cannot be examined.
static const char *find(const char *name, char path[static EXEC_PATH_BYTES_MAX])
{
    const char *search = environment_scan(environ).path;
    return !sys_is_forbidden() && name != NULL && exec_find(name, search, path, EXEC_PATH_BYTES_MAX)
               ? path
               : name;
}

EXPORT int execvpe(const char *name, char *const *argv, char *const *environment)
{
    struct exec_plan plan;
    char path[EXEC_PATH_BYTES_MAX];
    begin(&plan, find(name, path), environment);
    return failed(&plan, g_real_process.execvpe(name, argv, plan.environment.variables));
}

EXPORT int execvp(const char *name, char *const *argv)
{
    return execvpe(name, argv, environ);
}

EXPORT int fexecve(int fd, char *const *argv, char *const *environment)
{
    struct exec_plan plan;
    char path[EXEC_PATH_BYTES_MAX];
    begin(&plan, exec_path_of(fd, "", path), environment);
    return failed(&plan, g_real_process.fexecve(fd, argv, plan.environment.variables));
}

EXPORT int
execveat(int folder, const char *path, char *const *argv, char *const *environment, int flags)
{
    struct exec_plan plan;
    char name[EXEC_PATH_BYTES_MAX];
    begin(&plan, exec_path_of(folder, path, name), environment);
    return failed(&plan,
                  g_real_process.execveat(folder, path, argv, plan.environment.variables, flags));
}

// End the plan after a spawn, when the child's pid is known.
static int spawned(struct exec_plan *plan, int result, pid_t child, pid_t *pid)
{
    exec_plan_spawned(plan, result == 0 ? (uint32_t)child : 0);
    if (result == 0 && pid != NULL) {
        *pid = child;
    }
    exec_plan_end(plan, false);
    return result;
}

EXPORT int posix_spawn(pid_t *pid,
                       const char *path,
                       const void *actions,
                       const void *attributes,
                       char *const *argv,
                       char *const *environment)
{
    struct exec_plan plan;
    pid_t child = 0;
    exec_plan_make(&plan, path, environment);
    exec_plan_announce_spawn(&plan);
    const int result = g_real_process.posix_spawn(&child, path, actions, attributes, argv,
                                                  plan.environment.variables);
    return spawned(&plan, result, child, pid);
}

EXPORT int posix_spawnp(pid_t *pid,
                        const char *name,
                        const void *actions,
                        const void *attributes,
                        char *const *argv,
                        char *const *environment)
{
    struct exec_plan plan;
    char path[EXEC_PATH_BYTES_MAX];
    pid_t child = 0;
    exec_plan_make(&plan, find(name, path), environment);
    exec_plan_announce_spawn(&plan);
    const int result = g_real_process.posix_spawnp(&child, name, actions, attributes, argv,
                                                   plan.environment.variables);
    return spawned(&plan, result, child, pid);
}

// A list of arguments that were given one by one.
struct argument_list {
    char **items;
    size_t count; // including the NULL at the end
    char *on_stack[ARGUMENTS_ON_STACK];
};

static bool list_arguments(struct argument_list *list, const char *first, va_list *rest)
{
    va_list counted;
    va_copy(counted, *rest);
    list->count = 1;
    for (const char *next = first; next != NULL; next = va_arg(counted, const char *)) {
        list->count++;
    }
    va_end(counted);
    list->items = list->count <= ARGUMENTS_ON_STACK
                      ? list->on_stack
                      : page_alloc(list->count * sizeof(list->items[0]));
    if (list->items == NULL) {
        return false;
    }
    size_t at = 0;
    for (const char *next = first; at + 1 < list->count; next = va_arg(*rest, const char *)) {
        list->items[at++] = (char *)(uintptr_t)next;
    }
    list->items[at] = NULL;
    return true;
}

static int no_memory(void)
{
    errno = ENOMEM;
    return -1;
}

static int free_arguments(const struct argument_list *list, int result)
{
    if (list->items != list->on_stack) {
        page_free(list->items, list->count * sizeof(list->items[0]));
    }
    return result;
}

EXPORT int execl(const char *path, const char *first, ...)
{
    struct argument_list list;
    va_list rest;
    va_start(rest, first);
    const bool is_there = list_arguments(&list, first, &rest);
    va_end(rest);
    return is_there ? free_arguments(&list, execve(path, list.items, environ)) : no_memory();
}

EXPORT int execlp(const char *name, const char *first, ...)
{
    struct argument_list list;
    va_list rest;
    va_start(rest, first);
    const bool is_there = list_arguments(&list, first, &rest);
    va_end(rest);
    return is_there ? free_arguments(&list, execvpe(name, list.items, environ)) : no_memory();
}

EXPORT int execle(const char *path, const char *first, ...)
{
    struct argument_list list;
    va_list rest;
    va_start(rest, first);
    const bool is_there = list_arguments(&list, first, &rest);
    char *const *environment = is_there ? va_arg(rest, char *const *) : NULL;
    va_end(rest);
    return is_there ? free_arguments(&list, execve(path, list.items, environment)) : no_memory();
}
