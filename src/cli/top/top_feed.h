// SPDX-License-Identifier: MIT
// top_feed: brings the samples of a running recording, in a thread of its own.
//
//   asks the recorder for a checkpoint -> opens the file -> queries it -> hands the sample over
//        ^                                                                     |
//        +---- waits for the interval, and for four times as long as that took -+
//
// So the pause bounds what top costs: at most a fifth of one processor, and of the recorder's time.
// With each sample it asks the recorder to reply when anything happens after it. Without that reply
// the sample is still right at the end of the pause, and only this is handed over.
// When the recorder does not answer any more, the thread waits until the recorder has written its
// file and has ended, reads the file for the last time, and ends. It is never joined: a recorder
// that is stopped may keep it waiting, while the user quits. So a feed lives as long as the
// process. Context: H. One thread calls; the mutex protects what both use.
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "cli/top/top_model.h"
#include "cli/top/top_sample.h"

struct top_feed_options {
    pid_t recorder;   // 0: nothing runs, the file is read once
    const char *path; // of the recording
    int recorder_fd;  // pidfd of the recorder; -1: none
    const struct name_sources *sources;
    uint64_t interval_ms;
};

struct top_feed {
    struct top_feed_options options; // texts are borrowed
    int event_fd;                    // owned; readable when there is something to take
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    bool is_paused;
    bool is_hurried;           // the next sample is wanted now
    bool is_asked_for;         // the present sample is wanted during a pause, too
    uint64_t quiet_ms;         // how long the recording lasts; nothing happened since the sample
    struct top_sample *sample; // owned; the latest, until it is taken
    enum top_run_state state;
    char problem[512]; // of the latest attempt; "": none
};

// What a feed has for its user.
struct top_news {
    struct top_sample *sample; // the receiver owns it; NULL: there is no new one
    uint64_t quiet_ms;         // nothing has happened until then, since the last one; 0: not known
    enum top_run_state state;
    char problem[512];
};

// Start to read. `feed` must stay until the process ends.
enum err top_feed_start(struct top_feed *feed,
                        const struct top_feed_options *options,
                        struct err_info *info) MUST_USE;

// Take what is there. Call it when event_fd is readable.
void top_feed_take(struct top_feed *feed, struct top_news *out);

void top_feed_pause(struct top_feed *feed, bool is_paused);
void top_feed_hurry(struct top_feed *feed);
