// SPDX-License-Identifier: MIT
// coverage: counts named frames. See coverage.h.
#include "profile/accuracy/coverage.h"

#include "base/compiler.h"

enum err coverage_build(const struct profile *profile, struct module_coverage_vec *out)
{
    const struct recording *recording = &profile->recording;
    CLEANUP(module_coverage_vec_release) struct module_coverage_vec modules = {0};
    TRY(module_coverage_vec_resize(&modules, recording->module_count + 1));
    for (size_t i = 0; i < recording->frame_count; i++) {
        const struct rec_frame *frame = &recording->frames[i];
        if ((frame->flags & REC_FRAME_CUT) != 0) {
            continue;
        }
        struct code_chain chain = code_index_chain(&profile->code, (uint32_t)i);
        const struct code_location *real =
            profile_location_get(profile, chain.locations[chain.count - 1]);
        size_t place = frame->module == REC_NONE ? recording->module_count : frame->module;
        struct module_coverage *module = &modules.items[place];
        module->frames++;
        module->with_function += (real->flags & CODE_UNKNOWN) == 0;
        module->with_line += (real->flags & CODE_UNKNOWN) == 0 && real->line != 0;
    }
    *out = TAKE(modules);
    return ERR_OK;
}
