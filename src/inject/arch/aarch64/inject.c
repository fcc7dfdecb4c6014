// SPDX-License-Identifier: MIT
// arch/aarch64/inject: see inject.h. Attaching needs the code of src/inject/process, which is for
// x86-64; so every process is refused, and nothing else is ever called.
#include "inject/inject.h"

#include "inject/code/patch_plan.h"

static enum err refuse(struct err_info *info)
{
    return err_set(info, ERR_UNSUPPORTED,
                   "cairn attaches to running programs on x86-64 only; start the program under "
                   "cairn");
}

enum err inject_open(struct inject *inject,
                     int pid,
                     const struct inject_options *options,
                     struct err_info *info)
{
    (void)inject;
    (void)pid;
    (void)options;
    return refuse(info);
}

enum err inject_map(struct inject *inject,
                    struct bytes image,
                    struct inject_near *nears,
                    size_t count,
                    struct err_info *info)
{
    (void)inject;
    (void)image;
    (void)nears;
    (void)count;
    return refuse(info);
}

uint64_t inject_symbol(const struct inject *inject, struct bytes image, const char *name)
{
    (void)inject;
    (void)image;
    (void)name;
    return 0;
}

enum err inject_patch(struct inject *inject, const struct patch_plan *plan, struct err_info *info)
{
    (void)inject;
    (void)plan;
    return refuse(info);
}

enum err inject_unpatch(struct inject *inject, struct err_info *info)
{
    (void)inject;
    return refuse(info);
}

void inject_close(struct inject *inject)
{
    *inject = (struct inject){0};
}
