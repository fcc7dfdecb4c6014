// SPDX-License-Identifier: MIT
#include "profile/model/program_pairs.h"

#include <string.h>

#include "base/compiler.h"
#include "host/os/file.h"

// The executables that one recording ran.
struct executables {
    const struct profile *profile;
    struct u32_vec modules; // each once, in the order of execution
    uint32_t main;          // a module, or REC_NONE
};

static void executables_release(struct executables *executables)
{
    u32_vec_release(&executables->modules);
}

static const char *file_name_of(const struct profile *profile, uint32_t module)
{
    return path_file_name(profile_string(profile, profile->recording.modules[module].path));
}

// The module of a path, REC_NONE if no stack has a frame in it.
static uint32_t find_module(const struct profile *profile, rec_string path)
{
    const char *wanted = profile_string(profile, path);
    for (uint32_t i = 0; i < profile->recording.module_count; i++) {
        const char *known = profile_string(profile, profile->recording.modules[i].path);
        if (wanted[0] != '\0' && strcmp(known, wanted) == 0) {
            return i;
        }
    }
    return REC_NONE;
}

static bool has_module(const struct executables *executables, uint32_t module)
{
    for (size_t i = 0; i < executables->modules.len; i++) {
        if (executables->modules.items[i] == module) {
            return true;
        }
    }
    return false;
}

static MUST_USE enum err add_module(struct executables *executables, uint32_t module)
{
    bool is_known = module == REC_NONE || has_module(executables, module);
    return is_known ? ERR_OK : u32_vec_push(&executables->modules, module);
}

static MUST_USE enum err list_executables(const struct profile *profile, struct executables *out)
{
    const struct recording *recording = &profile->recording;
    uint32_t last_image = 0; // the last image of the first process
    out->profile = profile;
    out->main = REC_NONE;
    for (uint32_t i = 0; i < recording->process_count; i++) {
        const struct rec_process *process = &recording->processes[i];
        TRY(add_module(out, find_module(profile, process->executable)));
        if (process->pid == recording->processes[0].pid &&
            process->epoch > recording->processes[last_image].epoch) {
            last_image = i;
        }
    }
    for (uint32_t i = 0; i < recording->module_count; i++) {
        TRY(add_module(out, recording->modules[i].is_executable != 0 ? i : REC_NONE));
    }
    if (recording->process_count > 0) {
        out->main = find_module(profile, recording->processes[last_image].executable);
    }
    if (out->main == REC_NONE && out->modules.len == 1) {
        out->main = out->modules.items[0]; // another tool's recording has one executable
    }
    return ERR_OK;
}

static bool is_named_in(const struct executables *other, const char *file_name)
{
    for (size_t i = 0; i < other->modules.len; i++) {
        if (strcmp(file_name_of(other->profile, other->modules.items[i]), file_name) == 0) {
            return true;
        }
    }
    return false;
}

// Keep only those whose file name the other side lacks.
static MUST_USE enum err keep_unmatched(const struct executables *all,
                                        const struct executables *other,
                                        struct executables *out)
{
    out->profile = all->profile;
    out->main = REC_NONE;
    for (size_t i = 0; i < all->modules.len; i++) {
        uint32_t module = all->modules.items[i];
        if (is_named_in(other, file_name_of(all->profile, module))) {
            continue;
        }
        TRY(u32_vec_push(&out->modules, module));
        out->main = module == all->main ? module : out->main;
    }
    return ERR_OK;
}

// The only executable besides the main one, REC_NONE if there is none or more than one.
static uint32_t only_other(const struct executables *executables, uint32_t paired)
{
    uint32_t found = REC_NONE;
    for (size_t i = 0; i < executables->modules.len; i++) {
        uint32_t module = executables->modules.items[i];
        if (module != paired && found != REC_NONE) {
            return REC_NONE;
        }
        found = module != paired ? module : found;
    }
    return found;
}

static void pair_programs(struct program_pairs *pairs, uint32_t new, uint32_t old, uint32_t number)
{
    pairs->numbers[SIDE_NEW].items[new] = number;
    pairs->numbers[SIDE_OLD].items[old] = number;
}

enum err
program_pairs_build(const struct profile *new, const struct profile *old, struct program_pairs *out)
{
    const struct profile *profiles[SIDE_COUNT] = {[SIDE_NEW] = new, [SIDE_OLD] = old};
    CLEANUP(program_pairs_release) struct program_pairs pairs = {0};
    CLEANUP(executables_release) struct executables all_new = {0};
    CLEANUP(executables_release) struct executables all_old = {0};
    CLEANUP(executables_release) struct executables left_new = {0};
    CLEANUP(executables_release) struct executables left_old = {0};
    for (size_t side = 0; side < SIDE_COUNT; side++) {
        TRY(u32_vec_resize(&pairs.numbers[side], profiles[side]->recording.module_count));
    }
    TRY(list_executables(new, &all_new));
    TRY(list_executables(old, &all_old));
    TRY(keep_unmatched(&all_new, &all_old, &left_new));
    TRY(keep_unmatched(&all_old, &all_new, &left_old));
    bool are_mains = left_new.main != REC_NONE && left_old.main != REC_NONE;
    if (are_mains) {
        pair_programs(&pairs, left_new.main, left_old.main, 1);
    }
    uint32_t other_new = only_other(&left_new, are_mains ? left_new.main : REC_NONE);
    uint32_t other_old = only_other(&left_old, are_mains ? left_old.main : REC_NONE);
    if (other_new != REC_NONE && other_old != REC_NONE) {
        pair_programs(&pairs, other_new, other_old, 2);
    }
    *out = TAKE(pairs);
    return ERR_OK;
}

void program_pairs_release(struct program_pairs *pairs)
{
    for (size_t side = 0; side < SIDE_COUNT; side++) {
        u32_vec_release(&pairs->numbers[side]);
    }
}
