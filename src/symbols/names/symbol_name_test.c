// SPDX-License-Identifier: MIT
#include "symbols/names/symbol_name.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void known_manglings_become_readable(void **state)
{
    (void)state;
    static const struct {
        const char *mangled;
        const char *want;
    } cases[] = {
        {"", ""},
        {"main", "main"},
        {"_start", "_start"},
        {"\033[2Jx\n\177", "?[2Jx??"},
        {"_Z", "_Z"},
        {"_R", "_R"},
        {"_D", "_D"},
        {"_Zqqq", "_Zqqq"},
        {"_ZN5outer4workEi", "outer::work(int)"},
        {"_ZNSt6vectorIiSaIiEE9push_backERKi",
         "std::vector<int, std::allocator<int> >::push_back(int const&)"},
        {"_ZZ4mainENKUliE_clEi", "main::{lambda(int)#1}::operator()(int) const"},
        {"_Z4workv.part.0", "work() [clone .part.0]"},
        {"work.constprop.0", "work.constprop.0"},
        // Rust, both manglings; the hash is removed from the name.
        {"_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt"},
        {"_ZN58_$LT$alloc..string..String$u20$as$u20$core..fmt..Debug$GT$3fmt17h0123456789abcdefE",
         "<alloc::string::String as core::fmt::Debug>::fmt"},
        {"_RNvC6_123foo3bar", "123foo::bar"},
        {"_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar"},
        {"_Dmain", "D main"},
        {"_D3std5stdio7writelnFZv", "std.stdio.writeln()"},
    };
    CLEANUP(strbuf_release) struct strbuf out = {0};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(symbol_name_demangle(cases[i].mangled, &out), ERR_OK);
        assert_string_equal(strbuf_text(&out), cases[i].want);
    }
}

// Each P-pair of substitutions doubles the text: _Z1fSt4pairIiiES_IS0_S0_ES_IS1_S1_E...
static void append_doubling_name(struct strbuf *out, const char *head, int levels)
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    strbuf_append_text(out, head);
    strbuf_append_text(out, "St4pairIiiE");
    for (int level = 0; level < levels; level++) {
        char last = digits[level];
        strbuf_printf(out, "S_IS%c_S%c_E", last, last);
    }
}

static void names_that_stand_for_gigabytes_stay_mangled(void **state)
{
    (void)state;
    CLEANUP(strbuf_release) struct strbuf mangled = {0};
    CLEANUP(strbuf_release) struct strbuf out = {0};
    append_doubling_name(&mangled, "_Z1f", 3);
    assert_int_equal(symbol_name_demangle(strbuf_text(&mangled), &out), ERR_OK);
    assert_true(strncmp(strbuf_text(&out), "f(std::pair<int, int>", 21) == 0);
    assert_true(out.len > 2 * mangled.len); // the name does grow as the comment says

    strbuf_clear(&mangled);
    append_doubling_name(&mangled, "_Z1f", 35);
    assert_int_equal(symbol_name_demangle(strbuf_text(&mangled), &out), ERR_OK);
    assert_string_equal(strbuf_text(&out), strbuf_text(&mangled));
}

static void long_names_lose_inner_template_arguments(void **state)
{
    (void)state;
    static const char parameters[] = "(std::pair<int, int>, std::pair<std::pair<int, int>, "
                                     "std::pair<int, int> >, std::pair<std::pair<std::pair<...>, ";
    static const struct {
        const char *head;
        const char *tail;
        const char *want; // NULL: it stays mangled
    } cases[] = {
        {"_Z1f", "", "f"},
        {"_Zgt", "", "operator>"},
        {"_Zls", "", "operator<<"},
        {"_Zpm", "", "operator->*"},
        {"_Zss", "", "operator<=>"},
        {"_Z1f", "AgtLi4ELi3E_c", NULL}, // char [(4)>(3)]: its bracket ends no arguments
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(strbuf_release) struct strbuf mangled = {0};
        CLEANUP(strbuf_release) struct strbuf out = {0};
        CLEANUP(strbuf_release) struct strbuf want = {0};
        append_doubling_name(&mangled, cases[i].head, 11);
        strbuf_append_text(&mangled, cases[i].tail);
        strbuf_append_text(&want, cases[i].want != NULL ? cases[i].want : strbuf_text(&mangled));
        strbuf_append_text(&want, cases[i].want != NULL ? parameters : "");
        assert_int_equal(symbol_name_demangle(strbuf_text(&mangled), &out), ERR_OK);
        assert_true(strncmp(strbuf_text(&out), strbuf_text(&want), want.len) == 0);
        assert_true(out.len < 2048);
    }
}

static void deep_and_long_names_are_survived(void **state)
{
    (void)state;
    static const struct {
        const char *head;
        const char *repeated;
    } cases[] = {
        {"_Z1f", "P"},  {"_Z1fF", "F"},   {"_ZN", "1a"},     {"_RNv", "Nv"},
        {"_RI", "I"},   {"_D1a", "1b"},   {"_D1aQ", "Qa"},   {"_D1aF", "F"},
        {"plain", "x"}, {"_Z1fDp", "Dp"}, {"_Z1fI", "XadL"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(strbuf_release) struct strbuf mangled = {0};
        CLEANUP(strbuf_release) struct strbuf out = {0};
        strbuf_append_text(&mangled, cases[i].head);
        while (mangled.len < 3 * SYMBOL_NAME_MAX / 2) {
            strbuf_append_text(&mangled, cases[i].repeated);
            if (mangled.len % 997 < 8 || mangled.len > SYMBOL_NAME_MAX) {
                assert_int_equal(symbol_name_demangle(strbuf_text(&mangled), &out), ERR_OK);
                assert_true(out.len > 0 && out.len <= SYMBOL_NAME_MAX);
            }
            if (mangled.len > SYMBOL_NAME_MAX) {
                break;
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_manglings_become_readable),
        cmocka_unit_test(names_that_stand_for_gigabytes_stay_mangled),
        cmocka_unit_test(long_names_lose_inner_template_arguments),
        cmocka_unit_test(deep_and_long_names_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
