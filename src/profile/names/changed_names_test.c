// SPDX-License-Identifier: MIT
// Demangled names of each language, changed in hundreds of ways: their parts and shorter forms
// follow from the name alone (changed_bytes.h).
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/test_support/changed_bytes.h"
#include "profile/model/function_name.h"

enum {
    CHANGED_NAMES = 300, // of each name
    NAME_BYTES_MAX = 400,
};

static void add_name(const char *name, struct outcome_sum *sum)
{
    CLEANUP(strbuf_release) struct strbuf said = {0};
    const struct name_parts parts = name_split(name);
    strbuf_printf(&said, "%s: %zu %zu %zu, %zu, %d %d", name, parts.qualified_at,
                  parts.parameters_at, parts.len, name_len_without_clones(name),
                  is_wrapper_frame(name, ""), is_wrapper_frame(name, "/usr/include/c++/12/x.h"));
    for (int form = 0; form < NAME_FORM_COUNT; form++) {
        strbuf_append_text(&said, " | ");
        name_append(&said, name, (enum name_form)form);
    }
    strbuf_append_text(&said, " | ");
    name_append_in_sentence(&said, name);
    outcome_add_text(sum, strbuf_text(&said));
}

static void changed_names_have_the_same_parts_and_forms_each_time(void **state)
{
    static const struct {
        const char *name;
        const char *text;
    } names[] = {
        {"method", "std::vector<int> app::load<char>(std::string const&, int) const"},
        {"operators",
         "bool (anonymous namespace)::Map<A, (B)1>::operator()<operator< >(char (*)(int)) &&"},
        {"shifts", "std::ostream& operator<< <char>(std::ostream&, a::operator>>, b->c)"},
        {"conversion", "app::T<x>::operator std::vector<int, std::allocator<int> >*() const"},
        {"function", "void (*app::handler<(lambda(int)#1)>(int))(char const*)"},
        {"new", "operator new[](unsigned long, std::align_val_t)"},
        {"allocator", "std::__new_allocator<a::B>::allocate(unsigned long, void const*)"},
        {"clone", "app::work(int) [clone .part.0] [clone .constprop.12]"},
        {"clones", "work.constprop.0.isra.1.cold"},
        {"rust", "<alloc::vec::Vec<T,A> as core::ops::Drop>::drop::{{closure}}::h0123abcd"},
        {"go", "main.(*Tree[go.shape.int]).insert.func1"},
        {"d", "void app.main.__lambda3!(int[]).f(immutable(char)[])"},
        {"script", "LazyCompile:*<script>alert(1)</script> /a.js:1"},
        {"long",
         "app::a_class_with_a_long_name::a_function_with_an_even_longer_name_that_nobody_can_read<"
         "std::map<std::string, std::vector<std::pair<int, long> > > >(std::map<int, int>&) const"},
    };
    (void)state;
    unsigned changed = 0;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct outcome_sum sums[2] = {0};
        for (unsigned pass = 0; pass < 2; pass++) {
            uint64_t random = i + 1;
            for (unsigned k = 0; k < CHANGED_NAMES; k++) {
                char name[NAME_BYTES_MAX + 1];
                change_text(names[i].text, k % 4, NAME_BYTES_MAX, &random, name);
                add_name(name, &sums[pass]);
            }
        }
        changed += !outcomes_agree(sums, names[i].name);
    }
    assert_int_equal(changed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changed_names_have_the_same_parts_and_forms_each_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
