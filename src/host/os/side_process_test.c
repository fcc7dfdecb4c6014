// SPDX-License-Identifier: MIT
// side_process: what the recorder's side sees of one that works, cannot begin, dies or is ended.
#include "host/os/side_process.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/test_support/open_files.h"

enum {
    FAILURE = 3,         // the status of one that dies
    PATIENCE_MS = 60000, // of a stop; it ends at once
};

static enum err begin(void *context, struct err_info *info)
{
    if (strcmp(context, "refuse") == 0) {
        return err_set(info, ERR_INVALID, "it does not like that");
    }
    if (strcmp(context, "die") == 0) {
        _exit(FAILURE);
    }
    return ERR_OK;
}

// Answer each message with what it says; die if it names "die".
static void answer(void *context, int channel)
{
    struct side_message message;
    while (side_process_receive(channel, &message)) {
        struct err_info result = {0};
        if (strcmp(message.path, "die") == 0) {
            _exit(FAILURE);
        }
        if (message.is_reload) {
            (void)err_set(&result, ERR_LIMIT, "asked"); // it is in result
        } else {
            (void)snprintf(result.text, sizeof(result.text), "%.400s, %s", message.path,
                           message.old_identity != 0 ? "there" : "new");
        }
        side_process_reply(channel, &result);
    }
    if (strcmp(context, "fail") == 0) {
        _exit(FAILURE);
    }
}

static enum err start(const char *how, struct side_process *side, struct err_info *info)
{
    const struct side_process_work work = {.name = "side",
                                           .what = "the tested one",
                                           .context = (void *)(uintptr_t)how,
                                           .begin = begin,
                                           .run = answer};
    return side_process_start(&work, side, info);
}

static struct side_process started(const char *how)
{
    struct side_process side = {0};
    struct err_info info = {0};
    assert_int_equal(start(how, &side, &info), ERR_OK);
    assert_true(side.process > 0);
    return side;
}

// Wait for the next result or the end.
static struct err_info next_result(const struct side_process *side)
{
    struct err_info result = {0};
    assert_int_equal(poll(&(struct pollfd){.fd = side->channel, .events = POLLIN}, 1, -1), 1);
    assert_true(side_process_take_result(side, &result));
    return result;
}

static void it_receives_and_answers(void **state)
{
    (void)state;
    struct side_process side = started("");
    struct err_info result = {.code = ERR_IO};
    assert_false(side_process_take_result(&side, &result));
    side_process_send_path(&side, "/proc/self/exe");
    result = next_result(&side);
    assert_int_equal(result.code, ERR_OK);
    assert_string_equal(result.text, "/proc/self/exe, there");
    side_process_send_path(&side, "/nowhere/at/all");
    assert_string_equal(next_result(&side).text, "/nowhere/at/all, new");
    assert_int_equal(side_process_ask_reload(&side, &result), ERR_OK);
    result = next_result(&side);
    assert_int_equal(result.code, ERR_LIMIT);
    assert_string_equal(result.text, "asked");
    assert_false(side_process_take_result(&side, &result));
    assert_true(side_process_stop(&side, PATIENCE_MS));
    assert_int_equal(side.process, 0);
}

static void a_path_that_does_not_fit_is_not_sent(void **state)
{
    (void)state;
    static char path[PATH_MAX + 1];
    struct side_process side = started("");
    memset(path, 'x', PATH_MAX);
    side_process_send_path(&side, path);
    path[PATH_MAX - 1] = '\0';
    side_process_send_path(&side, path);
    const struct err_info result = next_result(&side);
    assert_int_equal(result.text[0], 'x');
    struct err_info none;
    assert_false(side_process_take_result(&side, &none));
    assert_true(side_process_stop(&side, PATIENCE_MS));
}

static void why_it_cannot_begin_is_said(void **state)
{
    (void)state;
    struct side_process side = {0};
    struct err_info info = {0};
    assert_int_equal(start("refuse", &side, &info), ERR_INVALID);
    assert_string_equal(info.text, "it does not like that");
    assert_int_equal(side.process, 0);
    assert_int_equal(start("die", &side, &info), ERR_DEAD);
    assert_string_equal(info.text, "the tested one died");
    assert_int_equal(side.process, 0);
}

// The end counts as a result, so a caller that waits for one goes on.
static void an_end_is_a_result(void **state)
{
    (void)state;
    struct side_process side = started("");
    struct err_info info = {0};
    side_process_send_path(&side, "die");
    assert_int_equal(next_result(&side).code, ERR_DEAD);
    assert_int_equal(next_result(&side).code, ERR_DEAD);
    assert_int_equal(side_process_ask_reload(&side, &info), ERR_IO);
    assert_false(side_process_stop(&side, 0));

    side = started("");
    side_process_send_path(&side, "die");
    assert_false(side_process_stop(&side, PATIENCE_MS));
}

static void a_stop_says_how_it_ended(void **state)
{
    (void)state;
    struct side_process side = started("fail"); // after the channel's end
    struct err_info info = {0};
    assert_int_equal(side_process_ask_reload(&side, &info), ERR_OK);
    assert_int_equal(poll(&(struct pollfd){.fd = side.channel, .events = POLLIN}, 1, -1), 1);
    assert_true(side_process_stop(&side, 0)); // it ran, and its result is of no use
    side = started("fail");
    assert_false(side_process_stop(&side, PATIENCE_MS));
    side = (struct side_process){0};
    assert_true(side_process_stop(&side, PATIENCE_MS));
    side_process_send_path(&side, "nobody");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_receives_and_answers),
        cmocka_unit_test(a_path_that_does_not_fit_is_not_sent),
        cmocka_unit_test(why_it_cannot_begin_is_said),
        cmocka_unit_test(an_end_is_a_result),
        cmocka_unit_test(a_stop_says_how_it_ended),
    };
    return cmocka_run_group_tests(tests, open_files_note, open_files_expect);
}
