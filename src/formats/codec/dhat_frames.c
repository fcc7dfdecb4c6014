// SPDX-License-Identifier: MIT
#include "formats/codec/dhat_frames.h"

#include "base/compiler.h"
#include "formats/codec/clean_text.h"

enum err dhat_frames_init(struct dhat_frames *frames, const struct profile *profile)
{
    *frames = (struct dhat_frames){.profile = profile};
    return u32_vec_resize(&frames->ids, profile->code.locations.len);
}

void dhat_frames_release(struct dhat_frames *frames)
{
    u32_vec_release(&frames->ids);
    u32_vec_release(&frames->locations);
}

enum err dhat_frames_refer(struct dhat_frames *frames, uint32_t location, struct json_writer *w)
{
    uint32_t none = 0; // requested once
    uint32_t *id = location != REC_NONE ? &frames->ids.items[location] : &none;
    if (*id == 0) {
        TRY(u32_vec_push(&frames->locations, location));
        *id = (uint32_t)frames->locations.len;
    }
    json_value_u64(w, *id);
    return ERR_OK;
}

static MUST_USE enum err
write_frame(const struct profile *profile, uint32_t location, struct json_writer *w)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    if (location == REC_NONE) {
        clean_append_function(&text, profile, location, (struct clean_rule){0});
    } else {
        clean_append_place(&text, profile, location, (struct clean_rule){0});
    }
    TRY(strbuf_result(&text));
    json_value_string(w, strbuf_text(&text));
    return ERR_OK;
}

enum err dhat_frames_write(const struct dhat_frames *frames, struct json_writer *w)
{
    json_key_array(w, "ftbl");
    json_value_string(w, "[root]");
    for (size_t i = 0; i < frames->locations.len; i++) {
        TRY(write_frame(frames->profile, frames->locations.items[i], w));
    }
    json_end_array(w);
    return ERR_OK;
}
