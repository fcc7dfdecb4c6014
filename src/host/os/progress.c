// SPDX-License-Identifier: MIT
#include "host/os/progress.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "host/text/format.h"

enum {
    QUIET_NS = 1000000000,
    INTERVAL_NS = 100000000
};

enum {
    MAX_WIDTH_COLUMNS = 200,
    DEFAULT_WIDTH_COLUMNS = 80
};

static uint64_t progress_clock_ns(void *context)
{
    (void)context;
    return clock_monotonic_ns();
}

static unsigned terminal_width(int fd)
{
    struct winsize size;
    if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
        return DEFAULT_WIDTH_COLUMNS;
    }
    return size.ws_col;
}

void progress_init(struct progress *p, FILE *stream)
{
    bool is_terminal = stream != NULL && isatty(fileno(stream)) == 1;
    unsigned width = is_terminal ? terminal_width(fileno(stream)) : DEFAULT_WIDTH_COLUMNS;
    progress_init_with_clock(p, is_terminal ? stream : NULL, width, progress_clock_ns, NULL);
}

void progress_init_with_clock(struct progress *p,
                              FILE *stream,
                              unsigned width_columns,
                              uint64_t (*now_ns)(void *context),
                              void *clock_context)
{
    *p = (struct progress){
        .stream = stream,
        .now_ns = now_ns,
        .clock_context = clock_context,
        .width_columns = width_columns < MAX_WIDTH_COLUMNS ? width_columns : MAX_WIDTH_COLUMNS,
    };
    p->started_ns = now_ns(clock_context);
}

static void show_line(struct progress *p, const char *what, uint64_t done, uint64_t total)
{
    struct human far =
        total != 0 ? format_percent(done < total ? done : total, total) : format_count(done);
    char line[MAX_WIDTH_COLUMNS + 1];
    (void)snprintf(line, sizeof(line), "%.110s: %s", what, far.text); // truncated below in any case
    // One column stays free: some terminals wrap after writing the last one.
    size_t max_len = p->width_columns > 1 ? p->width_columns - 1 : 0;
    if (max_len < strlen(line)) {
        line[max_len] = 0;
    }
    for (char *at = line; *at != 0; at++) {
        if ((unsigned char)*at < 0x20 || *at == 0x7f) {
            *at = '?';
        }
    }
    (void)fprintf(p->stream, "\r\033[K%s", line);
    (void)fflush(p->stream);
    p->is_visible = true;
}

void progress_update(struct progress *p, const char *what, uint64_t done, uint64_t total)
{
    if (p->stream == NULL) {
        return;
    }
    uint64_t now = p->now_ns(p->clock_context);
    if (now - p->started_ns < QUIET_NS || (p->shown_ns != 0 && now - p->shown_ns < INTERVAL_NS)) {
        return;
    }
    p->shown_ns = now;
    show_line(p, what, done, total);
}

void progress_clear(struct progress *p)
{
    if (p->is_visible) {
        (void)fputs("\r\033[K", p->stream);
        (void)fflush(p->stream);
        p->is_visible = false;
    }
}
