// SPDX-License-Identifier: MIT
// lane_texts: the texts that a lane sends in pieces: names of its process and thread, and marks.
//
// Trust: none; a longer text is truncated.
// Context: H, the recorder's main thread.
#pragma once

#include "aggregate/aggregator.h"
#include "base/err.h"
#include "host/text/strbuf.h"
#include "recorder/session/lane_consumer.h"

#define LANE_TEXTS_BYTES_MAX (256u << 10) // of one text
#define LANE_TEXTS_KINDS     9u

struct lane_texts {
    struct strbuf parts[LANE_TEXTS_KINDS]; // of incomplete texts
};

void lane_texts_release(struct lane_texts *texts);

// Collect the part of a TEXT record; the last part completes the text. Unknown kinds are ignored.
// ERR_NO_MEMORY, ERR_LIMIT.
enum err lane_texts_add(struct lane_texts *texts,
                        struct aggregator_thread *thread,
                        struct aggregator *aggregator,
                        const struct wire_record *record) MUST_USE;
