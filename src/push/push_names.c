// SPDX-License-Identifier: MIT
#include "push/push_names.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/hash.h"
#include "host/os/proc_file.h"
#include "push/push_labels.h"

enum {
    CGROUP_MAX_BYTES = 64 << 10,
};

static void release_from(struct push_names *names, size_t first)
{
    for (size_t i = first; i < names->names.len; i++) {
        strbuf_release(&names->names.items[i].text);
    }
    names->names.len = first < names->names.len ? first : names->names.len;
}

void push_names_release(struct push_names *names)
{
    release_from(names, 0);
    push_name_vec_release(&names->names);
}

// Return the build-id of an executable, "" if it is unknown.
static const char *build_id_of(const struct profile *profile, const char *executable)
{
    const struct recording *recording = &profile->recording;
    for (size_t i = 0; i < recording->module_count; i++) {
        const struct rec_module *module = &recording->modules[i];
        if (module->is_executable != 0 &&
            strcmp(profile_string(profile, module->path), executable) == 0) {
            return profile_string(profile, module->build_id);
        }
    }
    return "";
}

// Write a name. `process`: NULL for several ones.
static MUST_USE enum err write_name(const struct push_names *names,
                                    const struct profile *profile,
                                    const struct rec_process *process,
                                    struct strbuf *out)
{
    const struct recording *recording = &profile->recording;
    CLEANUP(strbuf_release) struct strbuf cgroup = {0};
    char host[HOST_NAME_MAX + 1] = "";
    (void)gethostname(host, sizeof(host) - 1); // else ""
    if (process != NULL &&
        !proc_file_read((pid_t)process->pid, "cgroup", CGROUP_MAX_BYTES, &cgroup)) {
        strbuf_clear(&cgroup);
    }
    const char *executable = process != NULL ? profile_string(profile, process->executable) : "";
    const struct push_origin origin = {
        .program = recording->process_count > 0
                       ? profile_string(profile, recording->processes[0].executable)
                       : "",
        .executable = executable,
        .host = host,
        .build_id = build_id_of(profile, executable),
        .cgroup = strbuf_text(&cgroup),
        .pid = process != NULL ? process->pid : 0,
    };
    strbuf_clear(out);
    return push_labels_write(names->labels, names->label_count, &origin, out);
}

// Return a number other than 0 that tells a process from others at its place.
static uint64_t key_of(const struct recording *recording, const struct rec_process *process)
{
    return process == NULL ? 1
                           : hash_mix(recording->meta.start_unix_ns ^ process->start_ms) ^
                                 ((uint64_t)process->pid << 32 | (process->epoch + 2));
}

enum err push_names_see(struct push_names *names, const struct profile *profile)
{
    const struct recording *recording = &profile->recording;
    const size_t count = recording->process_count;
    release_from(names, count + 1);
    while (names->names.len < count + 1) {
        TRY(push_name_vec_push(&names->names, (struct push_name){0}));
    }
    for (size_t i = 0; i <= count; i++) {
        const struct rec_process *process = i < count ? &recording->processes[i] : NULL;
        const uint64_t key = key_of(recording, process);
        struct push_name *name = &names->names.items[i];
        if (name->key != key) {
            TRY(write_name(names, profile, process, &name->text));
            name->key = key;
        }
    }
    return ERR_OK;
}

const char *push_names_of(const struct push_names *names, uint32_t process)
{
    const size_t index = process != REC_NONE ? process : names->names.len - 1;
    return strbuf_text(&names->names.items[index].text);
}
