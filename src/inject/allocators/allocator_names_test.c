// SPDX-License-Identifier: MIT
// allocator_names_test: the table of names, and the option that adds to it.
#include "inject/allocators/allocator_names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"

#define NONE AGENT_HOOK_COUNT

static const struct {
    const char *name;
    enum agent_hook hook;
} functions[] = {
    {"malloc", AGENT_MALLOC},
    {"free", AGENT_FREE},
    {"calloc", AGENT_CALLOC},
    {"realloc", AGENT_REALLOC},
    {"reallocarray", AGENT_REALLOCARRAY},
    {"reallocf", AGENT_REALLOCF},
    {"aligned_alloc", AGENT_ALIGNED_ALLOC},
    {"memalign", AGENT_ALIGNED_ALLOC},
    {"posix_memalign", AGENT_POSIX_MEMALIGN},
    {"valloc", AGENT_MALLOC},
    {"pvalloc", AGENT_MALLOC},
    {"cfree", AGENT_FREE},
    {"free_sized", AGENT_FREE},
    {"free_aligned_sized", AGENT_FREE},
    {"mallocx", AGENT_MALLOC},
    {"rallocx", AGENT_REALLOC},
    {"xallocx", AGENT_XALLOCX},
    {"dallocx", AGENT_FREE},
    {"sdallocx", AGENT_FREE},
    {"je_malloc", AGENT_MALLOC},
    {"_rjem_malloc", AGENT_MALLOC},
    {"_rjem_rallocx", AGENT_REALLOC},
    {"_rjem_sdallocx", AGENT_FREE},
    {"mi_malloc", AGENT_MALLOC},
    {"mi_malloc_aligned", AGENT_MALLOC},
    {"mi_zalloc_aligned_at", AGENT_MALLOC},
    {"mi_heap_malloc", AGENT_ALIGNED_ALLOC},
    {"mi_heap_calloc", AGENT_HEAP_CALLOC},
    {"mi_heap_realloc_aligned", AGENT_HEAP_REALLOC},
    {"mi_heap_recalloc", AGENT_HEAP_REALLOCARRAY},
    {"mi_recalloc", AGENT_REALLOCARRAY},
    {"mi_strdup", AGENT_STRDUP},
    {"mi_free_size_aligned", AGENT_FREE},
    {"mi_expand", AGENT_REALLOC},
    {"mi_new", AGENT_NEW},
    {"mi_new_aligned", AGENT_NEW_ALIGNED},
    {"mi_zalloc_small", AGENT_MALLOC},
    {"tc_malloc", AGENT_MALLOC},
    {"tc_newarray_nothrow", AGENT_MALLOC},
    {"tc_deletearray_sized", AGENT_FREE},
    {"__libc_memalign", AGENT_ALIGNED_ALLOC},
    {"__libc_free", AGENT_FREE},
    {"__wrap_malloc", AGENT_MALLOC},
    {"scalable_aligned_malloc", AGENT_MALLOC},
    {"scalable_free", AGENT_FREE},
    {"sn_calloc", AGENT_CALLOC},
    {"_dl_debug_state", AGENT_DL_DEBUG_STATE},
    {"malloc_usable_size", NONE},
    {"sallocx", NONE},
    {"nallocx", NONE},
    {"xmalloc", NONE},
    {"__real_malloc", NONE},
    {"mallo", NONE},
    {"mallocxx", NONE},
    {"je_", NONE},
    {"je_je_malloc", NONE},
    {"mi__Znwm", NONE},
    {"strdup", NONE}, // its malloc counts
    {"", NONE},
    {"~", NONE},
};

static void functions_are_known_by_name_and_prefix(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
        const char *name = functions[i].name;
        const struct allocator_form *form = allocator_form_find(name, strlen(name));
        const enum agent_hook found = form != NULL ? form->hook : NONE;
        if (found != functions[i].hook) {
            fail_msg("%s is %d, wanted %d", name, found, functions[i].hook);
        }
    }
    assert_non_null(allocator_form_find("malloc@@GLIBC_2.2.5", 6));
    assert_null(allocator_form_find("malloc@@GLIBC_2.2.5", 5));
}

// The 20 operators that C++17 lets a program replace, by their rule.
static void operators_are_known_in_all_forms(void **state)
{
    (void)state;
    static const char *const allocating[] = {"_Znwm", "_Znam"};
    static const char *const freeing[] = {"_ZdlPv", "_ZdaPv"};
    static const char *const alignment[] = {"", "St11align_val_t"};
    for (size_t i = 0; i < 8; i++) {
        char name[64];
        const bool throws = (i & 4) == 0;
        (void)snprintf(name, sizeof(name), "%s%s%s", allocating[i & 1], alignment[i >> 1 & 1],
                       throws ? "" : "RKSt9nothrow_t");
        const struct allocator_form *form = allocator_form_find(name, strlen(name));
        assert_non_null(form);
        assert_true(form->is_operator);
        assert_int_equal(agent_hook_shape(form->hook).effect,
                         throws ? AGENT_ALLOCATES_OR_THROWS : AGENT_ALLOCATES);
        assert_int_equal(agent_hook_shape(form->hook).size_argument, 0);
        char nothrow[96];
        (void)snprintf(nothrow, sizeof(nothrow), "%sRKSt9nothrow_t", name);
        assert_true(throws ? strcmp(form->nothrow, nothrow) == 0 : form->nothrow == NULL);
    }
    for (size_t i = 0; i < 16; i++) {
        const bool is_sized = (i & 4) != 0;
        const bool is_nothrow = (i & 8) != 0;
        if (is_sized && is_nothrow) {
            continue; // there is no such form
        }
        char name[64];
        (void)snprintf(name, sizeof(name), "%s%s%s%s", freeing[i & 1], is_sized ? "m" : "",
                       alignment[i >> 1 & 1], is_nothrow ? "RKSt9nothrow_t" : "");
        const struct allocator_form *form = allocator_form_find(name, strlen(name));
        assert_non_null(form);
        assert_true(form->is_operator);
        assert_int_equal(form->hook, AGENT_FREE);
    }
}

static void users_names_are_parsed(void **state)
{
    (void)state;
    struct allocator_name_vec names = {0};
    assert_int_equal(allocator_names_parse("malloc=my_alloc,free=my_free", &names, NULL), ERR_OK);
    assert_int_equal(allocator_names_parse("rallocx=_ZN4pool4growEPvmi", &names, NULL), ERR_OK);
    assert_int_equal(names.len, 3);
    assert_int_equal(names.items[0].hook, AGENT_MALLOC);
    assert_string_equal(names.items[0].name, "my_alloc");
    assert_int_equal(names.items[1].hook, AGENT_FREE);
    assert_string_equal(names.items[1].name, "my_free");
    assert_int_equal(names.items[2].hook, AGENT_REALLOC);
    assert_string_equal(names.items[2].name, "_ZN4pool4growEPvmi");
    static const struct {
        const char *text;
        const char *sentence;
    } bad[] = {
        {"", "'' is not like malloc=my_alloc"},
        {"malloc", "'malloc' is not like malloc=my_alloc"},
        {"malloc=", "'malloc=' is not like malloc=my_alloc"},
        {"=x", "'=x' is not like malloc=my_alloc"},
        {"malloc=a,", "'' is not like malloc=my_alloc"},
        {"new=a", "'new' is not a function of the malloc family"},
        {"_Znwm=a", "'_Znwm' is not a function of the malloc family"},
        {"je_malloc=a", "'je_malloc' is not a function of the malloc family"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err_info info = {0};
        assert_int_equal(allocator_names_parse(bad[i].text, &names, &info), ERR_INVALID);
        if (strncmp(info.text, bad[i].sentence, strlen(bad[i].sentence)) != 0) {
            fail_msg("'%s': \"%s\"", bad[i].text, info.text);
        }
    }
    allocator_names_release(&names);
}

// A program that imports such a name does not use malloc, or not only.
static void names_of_libc_are_not_private(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool is_private;
    } cases[] = {
        {"mi_malloc", true}, {"je_free", true}, {"mallocx", true},          {"malloc", false},
        {"free", false},     {"_Znwm", false},  {"execve", false},          {"execveat", false},
        {"execvp", false},   {"strdup", false}, {"_dl_debug_state", false}, {"prctl", false},
        {"syscall", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        if (allocator_name_is_private(cases[i].name, strlen(cases[i].name)) !=
            cases[i].is_private) {
            fail_msg("'%s'", cases[i].name);
        }
    }
}

static void names_tell_their_allocator(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *owner;
    } cases[] = {
        {"malloc", NULL},
        {"free_sized", NULL},
        {"mallocx", "jemalloc"},
        {"sdallocx", "jemalloc"},
        {"_rjem_malloc", "jemalloc"},
        {"je_", NULL},
        {"mi_new", "mimalloc"},
        {"mi_", NULL},
        {"tc_delete", "tcmalloc"},
        {"__libc_malloc", "libc"},
        {"__wrap_malloc", NULL},
        {"scalable_free", "tbb"},
        {"sn_malloc", "snmalloc"},
        {"_Znwm", NULL},
        {"execve", NULL},
        {"boxx", NULL},
        {"__wrap_mallocx", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *owner = allocator_name_owner(cases[i].name, strlen(cases[i].name));
        if ((owner == NULL) != (cases[i].owner == NULL) ||
            (owner != NULL && strcmp(owner, cases[i].owner) != 0)) {
            fail_msg("%s: %s", cases[i].name, owner != NULL ? owner : "none");
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_are_known_by_name_and_prefix),
        cmocka_unit_test(operators_are_known_in_all_forms),
        cmocka_unit_test(users_names_are_parsed),
        cmocka_unit_test(names_of_libc_are_not_private),
        cmocka_unit_test(names_tell_their_allocator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
