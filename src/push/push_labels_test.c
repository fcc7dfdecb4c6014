// SPDX-License-Identifier: MIT
// push_labels: names of Pyroscope from labels and the paths of control groups that Docker,
// containerd, CRI-O and Kubernetes make, with both of its drivers.
#include "push/push_labels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"

#define ID          "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define UID         "8a7d6c5b-1234-4321-9876-0123456789ab"
#define SIX         "aaaaaa"
#define SIXTY_TWO   SIX SIX SIX SIX SIX SIX SIX SIX SIX SIX "aa"
#define LETTERS     SIXTY_TWO SIXTY_TWO SIXTY_TWO SIXTY_TWO SIX // 254
#define UID_SYSTEMD "8a7d6c5b_1234_4321_9876_0123456789ab"

static void test_names(void **state)
{
    static const struct {
        const char *labels[3];
        struct {
            const char *program;
            const char *host;
            const char *build_id;
            const char *cgroup;
        } origin;
        const char *wanted;
    } cases[] = {
        {{NULL}, {"/usr/bin/server", "", "", ""}, "server"},
        {{NULL}, {"", "", "", ""}, "program"},
        {{NULL},
         {"server", "node7", "4f1c", "0::/user.slice\n"},
         "server{build_id=4f1c,host=node7}"},
        {{"env=prod", "service_name=api"}, {"server", "n", "", ""}, "api{env=prod,host=n}"},
        {{"service_name=api"}, {"server", "", "", ""}, "api"},
        {{"host=mine", "pod=x"}, {"server", "n", "", ""}, "server{host=mine,pod=x}"},
        {{NULL}, {"a b{c}", "x=y,z", "", ""}, "a_b_c_{host=x_y_z}"},
        {{NULL}, {"/usr/bin/g++", "n\xe9", "", ""}, "g__{host=n_}"},
        {{NULL}, {"x86_64-g.1", "\xc3\xa9", "", ""}, "x86_64-g.1{host=\xc3\xa9}"},
        {{NULL}, {"caf\xc3\xa9@2", "", "", ""}, "caf___2"},
        {{NULL}, {"a", "", "", "0::/docker/" ID "\n"}, "a{container_id=" ID "}"},
        {{NULL}, {"a", "", "", "0::/system.slice/docker-" ID ".scope\n"}, "a{container_id=" ID "}"},
        {{NULL},
         {"a", "", "",
          "12:memory:/kubepods/burstable/pod" UID "/" ID "\n11:cpu:/kubepods/burstable/pod" UID
          "/" ID "\n"},
         "a{container_id=" ID ",pod_uid=" UID "}"},
        {{NULL},
         {"a", "", "",
          "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_SYSTEMD
          ".slice/cri-containerd-" ID ".scope\n"},
         "a{container_id=" ID ",pod_uid=" UID_SYSTEMD "}"},
        {{NULL}, {"a", "", "", "0::/podman/pod8a7d-nothing/0" ID "\n"}, "a"},
        // One wrong character: the first, the last, and that of each form.
        {{NULL},
         {"a", "", "", "pod/podg" UID "/pod" UID_SYSTEMD "\n"},
         "a{pod_uid=" UID_SYSTEMD "}"},
        {{NULL}, {"a", "", "", "pod_a7d6c5b-1234-4321-9876-0123456789ab"}, "a"},
        {{NULL}, {"a", "", "", "pod8a7d6c5b-1234-4321-9876-0123456789ag"}, "a"},
        {{NULL}, {"a", "", "", "pod8a7d6c5b-1234-4321-9876-0123456789a"}, "a"},
        {{NULL}, {"a", "", "", "pod8a7d6c5b-123444321-9876-0123456789ab"}, "a"},
        {{"pod_uid=mine", "container_id=mine"},
         {"a", "", "", ID "/pod" UID},
         "a{pod_uid=mine,container_id=mine}"},
        {{"hos=x", "host2=y"}, {"a", "n", "", ""}, "a{hos=x,host2=y,host=n}"},
        {{NULL}, {"a", LETTERS "abc", "", ""}, "a{host=" LETTERS "ab}"},      // 256 bytes
        {{NULL}, {"a", LETTERS "a\xc3\xa9", "", ""}, "a{host=" LETTERS "a}"}, // no half character
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(strbuf_release) struct strbuf got = {0};
        size_t count = 0;
        while (count < 3 && cases[i].labels[count] != NULL) {
            count++;
        }
        const struct push_origin origin = {.program = cases[i].origin.program,
                                           .host = cases[i].origin.host,
                                           .build_id = cases[i].origin.build_id,
                                           .cgroup = cases[i].origin.cgroup,
                                           .executable = ""};
        assert_int_equal(push_labels_write(cases[i].labels, count, &origin, &got), ERR_OK);
        assert_string_equal(strbuf_text(&got), cases[i].wanted);
    }
}

static void test_labels(void **state)
{
    static const struct {
        const char *label;
        bool is_good;
    } cases[] = {
        {"env=prod", true},
        {"a_1=x.y/z:1-2", true},
        {"_a=\xc3\xa4", true},
        {"env", false},
        {"env=", false},
        {"=x", false},
        {"1a=x", false},
        {"a-b=x", false},
        {"a=x y", false},
        {"a=x,b=y", false},
        {"a={}", false},
        {"a=\"x\"", false},
        {"a=x\ny", false},
        {"", false},
        {"b=" LETTERS, true}, // 256 bytes
        {"b=" LETTERS "a", false},
        {"a=\xe9", false},
        {"__name__=x", false},
        {"service_name=g++", false},
        {"service_name=a-b/c.d_1", true},
        {"service_names=g++", true},
        {"service_nam=g++", true},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err_info info = {0};
        const enum err err = push_label_check(cases[i].label, &info);
        if ((err == ERR_OK) != cases[i].is_good) {
            fail_msg("'%s': status %d", cases[i].label, (int)err);
        }
    }
}

static void labels_of_one_name_are_told(void **state)
{
    (void)state;
    assert_true(push_labels_are_one("a=1", "a=2"));
    assert_false(push_labels_are_one("a=1", "ab=1"));
    assert_false(push_labels_are_one("ab=1", "a=1"));
}

static void a_process_has_its_own_labels(void **state)
{
    static const char *const labels[] = {"pid=mine"};
    const struct push_origin origin = {.program = "/bin/sh",
                                       .host = "n",
                                       .build_id = "",
                                       .cgroup = "",
                                       .executable = "/bin/cat",
                                       .pid = 71};
    CLEANUP(strbuf_release) struct strbuf got = {0};
    (void)state;
    assert_int_equal(push_labels_write(NULL, 0, &origin, &got), ERR_OK);
    assert_string_equal(strbuf_text(&got), "sh{executable=/bin/cat,host=n,pid=71}");
    strbuf_clear(&got);
    assert_int_equal(push_labels_write(labels, 1, &origin, &got), ERR_OK);
    assert_string_equal(strbuf_text(&got), "sh{pid=mine,executable=/bin/cat,host=n}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names), cmocka_unit_test(a_process_has_its_own_labels),
        cmocka_unit_test(labels_of_one_name_are_told), cmocka_unit_test(test_labels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
