// SPDX-License-Identifier: MIT
#include "recording/format/recording_owner.h"

#include <stdlib.h>

struct recording_owner *recording_owner_new(void)
{
    return calloc(1, sizeof(struct recording_owner));
}

void recording_owner_free(struct recording_owner *owner)
{
    if (owner == NULL) {
        return;
    }
    free(owner->string_data);
    free(owner->string_offsets);
#define X(type, name, count) free(owner->name);
    REC_TABLES(X)
#undef X
    free(owner);
}

void recording_release(struct recording *recording)
{
    recording_owner_free(recording->owner);
    *recording = (struct recording){0};
}
