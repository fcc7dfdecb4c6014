// SPDX-License-Identifier: MIT
// push_profile: the entries that checkpoints of a recording become, and their requests.
#include "push/push_profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/test_support/open_files.h"
#include "host/os/file.h"
#include "recording/test_support/recording_text.h"
#include "recording/write/recording_writer.h"

enum {
    QUERY_MOST = (32 << 10) - 1,
};

static const struct push_limits limits = {.samples = 16000, .bytes = 4 << 20};
static const char folder_form[] = "/tmp/push_profile.XXXXXX";

static struct bytes bytes_of(const char *text)
{
    return (struct bytes){.data = (const uint8_t *)text, .len = strlen(text)};
}

static void the_address_is_the_bases_with_the_path_once(void **state)
{
    (void)state;
    static const struct {
        const char *base;
        const char *url;
    } cases[] = {
        {"http://h:1", "http://h:1/ingest?name=a"},
        {"http://h:1/", "http://h:1/ingest?name=a"},
        {"http://h/x", "http://h/x/ingest?name=a"},
        {"http://h/ingest", "http://h/ingest?name=a"},
        {"http://h/ingest/", "http://h/ingest?name=a"},
        {"http://h/xingest", "http://h/xingest/ingest?name=a"},
        {"/ingest", "/ingest?name=a"},
        {"ingest", "ingest/ingest?name=a"},
        {"/", "/ingest?name=a"},
        {"", "/ingest?name=a"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(push_request_release) struct push_request request = {0};
        assert_int_equal(push_request_make(cases[i].base, bytes_of("name=a\nx"), false, &request),
                         ERR_OK);
        assert_string_equal(strbuf_text(&request.url), cases[i].url);
    }
}

static void what_is_no_entry_makes_no_request(void **state)
{
    (void)state;
    static const struct {
        const char *entry;
        const char *url; // NULL: it is none
    } cases[] = {
        {"name=\n", "b/ingest?name="},
        {"name=a%7Bb%3Dc%7D&from=1&until=2\n\n", "b/ingest?name=a%7Bb%3Dc%7D&from=1&until=2"},
        {"", NULL},
        {"\n", NULL},
        {"name\n", NULL},
        {"nama=\n", NULL},
        {"from=1&name=a\n", NULL},
        {"name=a", NULL},
        {"name=a b\n", NULL},
        {"name=a?\n", NULL},
        {"3 name=a\nxyz", "b/ingest?name=a"},
        {"4 name=a\nxyz", NULL},
        {"0 name=a\nxyz", NULL},
        {"3name=a\nxyz", NULL},
        {"3", NULL},
        {"99999999999999999999999999 name=a\nxyz", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(push_request_release) struct push_request request = {0};
        const enum err err = push_request_make("b", bytes_of(cases[i].entry), false, &request);
        assert_int_equal(err, cases[i].url != NULL ? ERR_OK : ERR_INVALID);
        assert_string_equal(strbuf_text(&request.url), cases[i].url != NULL ? cases[i].url : "");
    }
    static const char start[] = "name=";
    static char longest[QUERY_MOST + 3];
    for (size_t more = 0; more < 2; more++) {
        CLEANUP(push_request_release) struct push_request request = {0};
        memset(longest, 'a', QUERY_MOST + more);
        memcpy(longest, start, sizeof(start) - 1);
        longest[QUERY_MOST + more] = '\n';
        assert_int_equal(push_request_make("b", bytes_of(longest), false, &request),
                         more == 0 ? ERR_OK : ERR_INVALID);
    }
}

static void an_entry_may_have_a_smaller_form(void **state)
{
    (void)state;
    static const struct {
        const char *entry;
        bool is_smaller;
        const char *profile; // NULL: there is none
    } cases[] = {
        {"3 name=a\nwholexyz", false, "\r\n\r\nwhole\r\n--"},
        {"3 name=a\nwholexyz", true, "\r\n\r\nxyz\r\n--"},
        {"name=a\nwholexyz", true, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(push_request_release) struct push_request request = {0};
        assert_int_equal(
            push_request_make("b", bytes_of(cases[i].entry), cases[i].is_smaller, &request),
            cases[i].profile != NULL ? ERR_OK : ERR_INVALID);
        assert_true(cases[i].profile == NULL ||
                    strstr(strbuf_text(&request.body), cases[i].profile) != NULL);
    }
}

static size_t times_in(const char *text, const char *what)
{
    size_t count = 0;
    for (const char *at = strstr(text, what); at != NULL; at = strstr(at + 1, what)) {
        count++;
    }
    return count;
}

static void the_body_has_two_parts_between_boundaries(void **state)
{
    (void)state;
    CLEANUP(push_request_release) struct push_request request = {0};
    CLEANUP(strbuf_release) struct strbuf end = {0};
    const char *boundary = strstr(push_content_type, "boundary=") + strlen("boundary=");
    assert_int_equal(push_request_make("b", bytes_of("name=a\nline\n\nend"), false, &request),
                     ERR_OK);
    const char *body = strbuf_text(&request.body);
    assert_int_equal(strlen(body), request.body.len);
    assert_int_equal(times_in(body, boundary), 3);
    assert_true(strncmp(body, "--", 2) == 0);
    assert_true(strncmp(body + 2, boundary, strlen(boundary)) == 0);
    strbuf_printf(&end, "\r\n\r\nline\n\nend\r\n--%s--\r\n", boundary);
    assert_true(request.body.len > end.len);
    assert_string_equal(body + request.body.len - end.len, strbuf_text(&end));
}

struct scene {
    char folder[sizeof(folder_form)];
    struct side_message message;
};

static int make_scene(void **state)
{
    static struct scene scene;
    scene = (struct scene){0};
    memcpy(scene.folder, folder_form, sizeof(folder_form));
    if (mkdtemp(scene.folder) == NULL) {
        return -1;
    }
    (void)snprintf(scene.message.path, sizeof(scene.message.path), "%s/r.cairn", scene.folder);
    *state = &scene;
    return 0;
}

static int free_scene(void **state)
{
    struct scene *scene = *state;
    return unlink(scene->message.path) == 0 && rmdir(scene->folder) == 0 ? 0 : -1;
}

// Write the recording of a run that began at `start_ns` and lasted so long.
static void write_recording(const struct scene *scene, uint64_t start_ns, uint64_t runtime_ms)
{
    struct err_info info = {0};
    CLEANUP(recording_release) struct recording recording = {0};
    if (recording_from_text("process web\nmain;load 10 1000 5 500\n", &recording, &info) !=
        ERR_OK) {
        fail_msg("%s", info.text);
    }
    recording.meta.start_unix_ns = start_ns;
    recording.meta.runtime_ms = runtime_ms;
    assert_int_equal(recording_write(&recording, scene->message.path, NULL, &info), ERR_OK);
}

// The entries of a checkpoint.
struct taken {
    struct strbuf text; // owned; of the latest
    uint64_t order;
    unsigned count;
};

static void take(void *context, uint64_t order, struct bytes entry)
{
    struct taken *taken = context;
    strbuf_clear(&taken->text);
    strbuf_append(&taken->text, entry.data, entry.len);
    taken->order = order;
    taken->count++;
}

static void expect_entry(struct push_source *source, const char *times, uint64_t order)
{
    struct err_info info = {0};
    struct taken taken = {0};
    CLEANUP(strbuf_release) struct strbuf end = {0};
    assert_int_equal(push_source_collect(source, take, &taken, &info), ERR_OK);
    assert_int_equal(taken.order, order);
    assert_int_equal(taken.count, 1);
    CLEANUP(strbuf_release) struct strbuf entry = taken.text;
    const char *line_end = memchr(entry.data, '\n', entry.len);
    assert_non_null(line_end);
    strbuf_printf(&end, "%%7D&%s&spyName=cairn\n\x1f\x8b", times); // gzip's magic
    const char *at = strstr(entry.data, "%7D&from=");
    assert_non_null(at);
    assert_memory_equal(at, strbuf_text(&end), end.len);
    assert_true(strncmp(entry.data, "name=web%7B", 11) == 0);
    assert_non_null(strstr(entry.data, "team%3Dblue"));
    assert_int_equal(push_source_collect(source, take, &taken, &info), ERR_NOT_FOUND);
}

static void each_checkpoint_becomes_an_entry_that_begins_where_the_last_ended(void **state)
{
    static const char *const labels[] = {"team=blue"};
    const struct scene *scene = *state;
    const uint64_t second = 1000000000;
    struct push_source source = {.limits = limits,
                                 .names_of_processes = {.labels = labels, .label_count = 1}};
    struct err_info info = {0};
    struct taken taken = {.order = 7};
    assert_int_equal(push_source_collect(&source, take, &taken, &info), ERR_NOT_FOUND);
    assert_int_equal(push_source_set_path(&source, &scene->message), ERR_OK);
    assert_int_equal(push_source_collect(&source, take, &taken, &info), ERR_NOT_FOUND);
    assert_int_equal(taken.order, 7);
    write_recording(scene, 100 * second, 15000);
    expect_entry(&source, "from=100&until=115", 115 * second);
    write_recording(scene, 100 * second, 30999);
    expect_entry(&source, "from=115&until=130", 130999 * (second / 1000));
    write_recording(scene, 100 * second, 31999);
    expect_entry(&source, "from=130&until=131", 131999 * (second / 1000));
    write_recording(scene, 100 * second, 31999); // of no time: a collector would refuse it
    expect_entry(&source, "from=131&until=132", 131999 * (second / 1000));
    write_recording(scene, 50 * second, 1); // the clock was set back
    expect_entry(&source, "from=50&until=51", 50001 * (second / 1000));
    write_recording(scene, UINT64_MAX, UINT64_MAX);
    assert_int_equal(push_source_collect(&source, take, &taken, &info), ERR_OK);
    assert_true(taken.order > INT64_MAX);
    strbuf_release(&taken.text);
    push_source_release(&source);
}

static void the_file_of_an_earlier_run_is_none_of_ours(void **state)
{
    struct scene *scene = *state;
    struct push_source source = {.limits = limits};
    struct err_info info = {0};
    struct stat status;
    struct taken taken = {0};
    write_recording(scene, 1, 1);
    assert_int_equal(stat(scene->message.path, &status), 0);
    scene->message.old_identity = file_identity(&status);
    assert_int_equal(push_source_set_path(&source, &scene->message), ERR_OK);
    assert_int_equal(push_source_collect(&source, take, &taken, &info), ERR_NOT_FOUND);
    write_recording(scene, 1, 2);
    assert_int_equal(push_source_collect(&source, take, &taken, &info), ERR_OK);
    strbuf_release(&taken.text);
    push_source_release(&source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_address_is_the_bases_with_the_path_once),
        cmocka_unit_test(what_is_no_entry_makes_no_request),
        cmocka_unit_test(an_entry_may_have_a_smaller_form),
        cmocka_unit_test(the_body_has_two_parts_between_boundaries),
        cmocka_unit_test_setup_teardown(
            each_checkpoint_becomes_an_entry_that_begins_where_the_last_ended, make_scene,
            free_scene),
        cmocka_unit_test_setup_teardown(the_file_of_an_earlier_run_is_none_of_ours, make_scene,
                                        free_scene),
    };
    return cmocka_run_group_tests(tests, open_files_note, open_files_expect);
}
