// SPDX-License-Identifier: MIT
// findings_builder: see the header.
#include "profile/findings/findings_builder.h"

#include <inttypes.h>

#include "base/compiler.h"
#include "host/os/file.h"
#include "profile/model/function_name.h"

// Begin the sentence of the next finding.
struct strbuf *finding_begin(struct findings_builder *builder, struct finding *finding)
{
    finding->sentence = builder->out.texts.len;
    return &builder->out.texts;
}

enum err finding_add(struct findings_builder *builder, const struct finding *finding)
{
    strbuf_append_char(&builder->out.texts, '\0');
    return finding_vec_push(&builder->out.items, *finding);
}

void finding_append_site(const struct findings_builder *builder,
                         struct strbuf *out,
                         uint32_t location)
{
    const struct profile *profile = builder->selection->profile;
    if (location == REC_NONE) {
        strbuf_append_text(out, "code without a stack");
        return;
    }
    name_append_in_sentence(out, profile_location_function(profile, location));
    const char *file = profile_location_file(profile, location);
    const uint32_t line = profile_location_get(profile, location)->line;
    if (file[0] != '\0') {
        strbuf_append_text(out, " (");
        name_append_in_sentence(out, path_file_name(file));
        strbuf_printf(out, line > 0 ? ":%" PRIu32 ")" : ")", line);
    }
}
