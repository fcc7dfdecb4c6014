// SPDX-License-Identifier: MIT
#include "target/preload/exports/exec_plan.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/sys.h"
#include "target/preload/process/process.h"
#include "target/producer/exec_note.h"
#include "target/producer/session_door.h"
#include "target/producer/session_join.h"

// Whether the library that an entry of LD_PRELOAD names can be opened from here. access(2) would
// permit what Landlock or AppArmor forbid.
static bool is_library_there(const char *entry, size_t length)
{
    char path[ENVIRONMENT_BYTES];
    if (length >= sizeof(path)) {
        return true; // unknown
    }
    memcpy(path, entry, length);
    path[length] = '\0';
    const long fd = sys_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    if (sys_failed(fd)) {
        return fd == -EMFILE || fd == -ENFILE; // the program may have fewer descriptors open
    }
    (void)sys_close((int)fd); // read only
    return true;
}

// Return why the program could not join in the place where it is executed.
static enum exec_obstacle find_obstacle(const struct environment_scan *scan)
{
    if (!is_library_there(scan->ours, scan->ours_bytes)) {
        return EXEC_LIBRARY;
    }
    return session_is_reachable(scan->session) ? EXEC_NONE : EXEC_UNREACHABLE;
}

bool exec_plan_may_join(char *const *variables)
{
    const struct environment_scan scan = environment_scan(variables);
    return scan.ours == NULL || scan.session == NULL || find_obstacle(&scan) == EXEC_NONE;
}

// Whether our library would disturb the kernel, the loader or an emulator in that program. A tool
// of valgrind is a static program that loads our library into the program inside. There memcheck
// finds errors in our system calls, and the hooks are in its stacks.
static bool is_harmed(enum exec_obstacle obstacle, const struct environment_scan *given)
{
    switch (obstacle) {
    case EXEC_BITS32:
    case EXEC_MACHINE:
    case EXEC_LIBC:
    case EXEC_SANITIZER:
    case EXEC_LIBRARY:
    case EXEC_UNREACHABLE:
    case EXEC_SECCOMP:
        return true;
    case EXEC_STATIC:
        return given->is_of_valgrind;
    case EXEC_NONE:
    case EXEC_IDENTITY:
    case EXEC_ENVIRONMENT:
    case EXEC_AGENT:
    case EXEC_INLINE:
    case EXEC_OBSTACLE_COUNT:
        break;
    }
    return false;
}

// Give the program the session's address for another network namespace.
static bool use_door(struct exec_plan *plan, char *const *variables)
{
    const char *door = session_door(plan->session, process_pid_namespace());
    if (door == NULL) {
        return false;
    }
    environment_release(&plan->environment);
    return environment_with_us(&plan->environment, variables, door) &&
           session_is_reachable(environment_scan(plan->environment.variables).session);
}

// Whether scripts have put another library before ours (LD_PRELOAD=x.so:$LD_PRELOAD). An allocator
// there would hide the heap from us.
static bool is_behind_others(const struct environment_scan *scan)
{
    return scan->ours != NULL && scan->ours != scan->preload && scan->session != NULL &&
           environment_names_ours(scan->session);
}

// Put our variables back unless they were removed on purpose. Returns the obstacle found.
static enum exec_obstacle complete(struct exec_plan *plan, char *const *variables)
{
    const struct environment_scan before = environment_scan(variables);
    if (plan->session != NULL && before.ours == NULL) {
        if (before.session != NULL && before.preload == NULL) {
            return EXEC_ENVIRONMENT;
        }
        if (!environment_with_us(&plan->environment, variables, NULL)) {
            return EXEC_ENVIRONMENT;
        }
    } else if (plan->session != NULL && is_behind_others(&before)) {
        (void)environment_with_us(&plan->environment, variables, NULL); // else unchanged
    }
    const struct environment_scan after = environment_scan(plan->environment.variables);
    if (plan->session == NULL && after.ours != NULL) { // the loader would report a missing library
        return is_library_there(after.ours, after.ours_bytes) ? EXEC_NONE : EXEC_LIBRARY;
    }
    if (plan->session == NULL || after.ours == NULL || after.session == NULL) {
        return EXEC_NONE;
    }
    const enum exec_obstacle obstacle = find_obstacle(&after);
    const bool has_door = obstacle == EXEC_UNREACHABLE && environment_names_ours(after.session);
    return has_door && use_door(plan, variables) ? EXEC_NONE : obstacle;
}

// Whether the loader may print something and end, before any library of the program runs.
static bool may_list(const char *path, const struct environment_scan *given)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    // By the name first: few programs have such a one, and the file was opened once before.
    return given->lists_libraries ||
           (strncmp(name, "ld", strlen("ld")) == 0 && exec_check_is_loader(path));
}

void exec_plan_make(struct exec_plan *plan, const char *path, char *const *variables)
{
    plan->session = process_followed_session();
    plan->path = path;
    plan->number = 0;
    plan->obstacle = EXEC_NONE;
    plan->is_traced = false;
    plan->may_list = false;
    environment_as_is(&plan->environment, variables);
    const struct environment_scan given = environment_scan(variables);
    const bool has_ours = given.ours != NULL;
    if (path == NULL || (plan->session == NULL && !has_ours)) {
        return;
    }
    plan->may_list = may_list(path, &given);
    plan->obstacle = sys_is_forbidden() ? EXEC_SECCOMP : exec_check(path);
    if (plan->obstacle == EXEC_NONE || plan->obstacle == EXEC_STATIC) {
        const enum exec_obstacle around = complete(plan, variables);
        plan->obstacle = plan->obstacle == EXEC_NONE ? around : plan->obstacle;
    }
    if (is_harmed(plan->obstacle, &given)) {
        environment_release(&plan->environment);
        environment_as_is(&plan->environment, variables);
        (void)(has_ours && environment_without_us(&plan->environment, variables)); // else unchanged
    }
}

static void announce(struct exec_plan *plan, uint32_t pid, bool is_to_be_followed, bool makes_child)
{
    const struct exec_notice notice = {.path = plan->path,
                                       .obstacle = plan->obstacle,
                                       .pid = pid,
                                       .pid_namespace = process_pid_namespace(),
                                       .is_to_be_followed = is_to_be_followed,
                                       .makes_child = makes_child};
    plan->number = exec_note_put(plan->session, &notice, &plan->is_traced);
}

static bool has_obstacle(const struct exec_plan *plan)
{
    return plan->session != NULL && plan->obstacle != EXEC_NONE;
}

static bool may_follow(const struct exec_plan *plan)
{
    return has_obstacle(plan) && exec_note_may_follow(plan->session, plan->obstacle);
}

void exec_plan_announce(struct exec_plan *plan)
{
    // Else the process would count as killed. A vfork child has its parent's note.
    if (sys_is_forbidden() || (plan->may_list && process_is_this())) {
        process_forgo_exit_note();
    }
    if (has_obstacle(plan)) {
        announce(plan, (uint32_t)sys_getpid(), may_follow(plan), false);
    }
}

void exec_plan_announce_spawn(struct exec_plan *plan)
{
    if (may_follow(plan)) {
        announce(plan, (uint32_t)sys_getpid(), true, true);
    }
}

void exec_plan_spawned(struct exec_plan *plan, uint32_t pid)
{
    if (pid != 0 && plan->is_traced) {
        return;
    }
    exec_note_take_back(plan->session, plan->number);
    if (pid != 0 && has_obstacle(plan)) {
        announce(plan, pid, false, false);
    }
}

void exec_plan_end(struct exec_plan *plan, bool has_failed)
{
    if (has_failed && plan->session != NULL) {
        exec_note_take_back(plan->session, plan->number);
    }
    environment_release(&plan->environment);
}
