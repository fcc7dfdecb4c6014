// SPDX-License-Identifier: MIT
// Tests of function_name and wrapper_frames, with names of real compilers and demanglers.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "profile/model/function_name.h"

static const struct {
    const char *name;
    const char *no_return_type;
    const char *no_parameters;
    const char *no_templates;
} names[] = {
    {"main", "main", "main", "main"},
    {"load(char const*)", "load(char const*)", "load", "load"},
    {"std::vector<int> app::load<char>(std::string const&, int) const",
     "app::load<char>(std::string const&, int) const", "app::load<char>", "app::load"},
    {"void std::vector<int, std::allocator<int> >::_M_realloc_insert<int>(int&&)",
     "std::vector<int, std::allocator<int> >::_M_realloc_insert<int>(int&&)",
     "std::vector<int, std::allocator<int> >::_M_realloc_insert<int>",
     "std::vector::_M_realloc_insert"},
    {"operator new(unsigned long)", "operator new(unsigned long)", "operator new", "operator new"},
    {"operator new[](unsigned long, std::align_val_t)",
     "operator new[](unsigned long, std::align_val_t)", "operator new[]", "operator new[]"},
    {"bool operator<(A<1> const&, B)", "operator<(A<1> const&, B)", "operator<", "operator<"},
    {"bool operator< <int>(int)", "operator< <int>(int)", "operator< <int>", "operator<"},
    {"std::basic_string<char> std::operator+<char>(char const*, std::basic_string<char>&&)",
     "std::operator+<char>(char const*, std::basic_string<char>&&)", "std::operator+<char>",
     "std::operator+"},
    {"A& A::operator+=<B>(B)", "A::operator+=<B>(B)", "A::operator+=<B>", "A::operator+="},
    {"A<1>::operator->() const", "A<1>::operator->() const", "A<1>::operator->", "A::operator->"},
    {"A::operator()(int) const", "A::operator()(int) const", "A::operator()", "A::operator()"},
    {"A::operator bool() const", "A::operator bool() const", "A::operator bool",
     "A::operator bool"},
    {"(anonymous namespace)::grow(int)", "(anonymous namespace)::grow(int)",
     "(anonymous namespace)::grow", "(anonymous namespace)::grow"},
    {"void app::(anonymous namespace)::grow<int>(int)",
     "app::(anonymous namespace)::grow<int>(int)", "app::(anonymous namespace)::grow<int>",
     "app::(anonymous namespace)::grow"},
    {"run(int)::{lambda(char)#1}::operator()(char) const",
     "run(int)::{lambda(char)#1}::operator()(char) const", "run(int)::{lambda(char)#1}::operator()",
     "run(int)::{lambda(char)#1}::operator()"},
    {"A::run(int) const::{lambda()#1}::operator()() const",
     "A::run(int) const::{lambda()#1}::operator()() const",
     "A::run(int) const::{lambda()#1}::operator()", "A::run(int) const::{lambda()#1}::operator()"},
    {"unsigned long count<A<B<C> > >(A<B<C> >)", "count<A<B<C> > >(A<B<C> >)", "count<A<B<C> > >",
     "count"},
    {"alloc::raw_vec::RawVec<T,A>::grow_one", "alloc::raw_vec::RawVec<T,A>::grow_one",
     "alloc::raw_vec::RawVec<T,A>::grow_one", "alloc::raw_vec::RawVec::grow_one"},
    {"<app::Cache as core::clone::Clone>::clone", "<app::Cache as core::clone::Clone>::clone",
     "<app::Cache as core::clone::Clone>::clone", "<app::Cache as core::clone::Clone>::clone"},
    {"app::call<fn() -> u8,T>::run", "app::call<fn() -> u8,T>::run", "app::call<fn() -> u8,T>::run",
     "app::call::run"},
    {"app::run::{{closure}}", "app::run::{{closure}}", "app::run::{{closure}}",
     "app::run::{{closure}}"},
#define SAME(name)             \
    {                          \
        name, name, name, name \
    }
    // Names without a signature: nothing is removed.
    SAME("<script>alert(1)</script>"),
    SAME(".*regex[special](+)?^$|{2}"),
    SAME("a<b>c"),
    SAME("f(x)g(y)"),
    SAME("main.(*Server).ServeHTTP"),
    SAME("LazyCompile:*render /srv/app (copy).js:10"),
    SAME("Function:~(anonymous) /srv/app.js:1"),
    SAME("rm -rf everything"),
    SAME("half<open(int"),
    SAME("closed)before(opened"),
    SAME("vtable for app::Cache"),
    {"work() [clone .cold]", "work() [clone .cold]", "work", "work"},
    {"int work(int) (.cold)", "work(int) (.cold)", "work", "work"},
    {"void A::get() const &", "A::get() const &", "A::get", "A::get"},
    {"std::function<void (int)>::operator()(int) const",
     "std::function<void (int)>::operator()(int) const", "std::function<void (int)>::operator()",
     "std::function::operator()"},
    {"", "", "", ""},
    {"((((", "((((", "((((", "(((("},
    {"a>>>>b", "a>>>>b", "a>>>>b", "a>>>>b"},
};

static void names_are_shortened_without_losing_what_they_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *wanted[] = {names[i].name, names[i].no_return_type, names[i].no_parameters,
                                names[i].no_templates};
        for (int form = 0; form <= NAME_NO_TEMPLATES; form++) {
            CLEANUP(strbuf_release) struct strbuf out = {0};
            name_append(&out, names[i].name, (enum name_form)form);
            assert_string_equal(strbuf_text(&out), wanted[form]);
        }
    }
}

static void namespaces_without_a_name_are_removed(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"(anonymous namespace)::grow(int)", "grow"},
        {"void app::(anonymous namespace)::grow<int>(int)", "app::grow"},
        {"(anonymous namespace)::a::(anonymous namespace)::b()", "a::b"},
        {"(anonymous namespace)", "(anonymous namespace)"},
        {"app::load<char>(int)", "app::load"},
    };
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        CLEANUP(strbuf_release) struct strbuf out = {0};
        CLEANUP(strbuf_release) struct strbuf sentence = {0};
        name_append(&out, pairs[i][0], NAME_NO_ANONYMOUS);
        name_append_in_sentence(&sentence, pairs[i][0]);
        assert_string_equal(strbuf_text(&out), pairs[i][1]);
        assert_string_equal(strbuf_text(&sentence), pairs[i][1]);
    }
}

// For any brackets in a name, each form is at most as long as the one before it, and every read
// stays inside the name (checked by the sanitizers).
static void any_brackets_make_shorter_forms(void **state)
{
    (void)state;
    static const char alphabet[] = "<>()[]{}: a&-";
    uint64_t random = 7;
    for (int round = 0; round < 20000; round++) {
        char name[24] = "";
        size_t len = (size_t)(round % 20);
        for (size_t i = 0; i < len; i++) {
            random = random * 6364136223846793005ULL + 1442695040888963407ULL;
            name[i] = alphabet[(random >> 33) % (sizeof(alphabet) - 1)];
        }
        size_t before = len;
        for (int form = 0; form < NAME_FORM_COUNT; form++) {
            CLEANUP(strbuf_release) struct strbuf out = {0};
            name_append(&out, name, (enum name_form)form);
            if (out.len > before) {
                fail_msg("form %d of \"%s\" is longer than the one before: \"%s\"", form, name,
                         strbuf_text(&out));
            }
            before = out.len;
        }
    }
}

// Of a long name the middle is left out, and no character is cut in two.
static void a_sentence_has_the_ends_of_a_long_name(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *wanted;
    } cases[] = {
        {"main", "main"},
        {"app::load<char>(int)", "app::load"},
        {"a234567890b234567890c234567890d234567890e234567890f23456",
         "a234567890b234567890c234567890d234567890e234567890f23456"},
        {"a234567890b234567890c234567890d234567890e234567890f234567",
         "a234567890b234567890c2345678...0d234567890e234567890f234567"},
        // Characters of two bytes, at the 28th byte and at the 28th from the end
        {"a234567890b234567890c234567\xc3\xa9|\xc3\xa9"
         "d234567890e234567890f234567",
         "a234567890b234567890c234567...d234567890e234567890f234567"},
        {"a234567890b234567890c23456\xc3\xa9|\xc3\xa9"
         "d234567890e234567890f23456",
         "a234567890b234567890c23456\xc3\xa9...\xc3\xa9"
         "d234567890e234567890f23456"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(strbuf_release) struct strbuf out = {0};
        name_append_in_sentence(&out, cases[i].name);
        assert_string_equal(strbuf_text(&out), cases[i].wanted);
    }
}

static void wrapper_frames_is_reported_from_what_people_wrote(void **state)
{
    (void)state;
    static const struct {
        const char *function;
        const char *file;
        bool wanted;
    } cases[] = {
        {"operator new(unsigned long)", "", true},
        {"operator new[](unsigned long, std::nothrow_t const&)", "", true},
        {"std::allocator<int>::allocate(unsigned long)", "", true},
        {"__gnu_cxx::new_allocator<char>::allocate(unsigned long, void const*)", "", true},
        {"void std::vector<int, std::allocator<int> >::_M_realloc_insert<int>(int&&)", "", true},
        {"std::unique_ptr<A> std::make_unique<A>()", "", true},
        {"strdup", "", true},
        {"xmalloc", "", true},
        {"__alloc_dir", "", true},
        {"deflateInit2_", "", true},
        {"imalloc", "/src/grep-3.8/lib/ialloc.h", true},
        {"call_chunkfun", "obstack.c", true},
        {"_obstack_newchunk", "", true},
        {"_obstack_free", "", false},
        {"__vasprintf_internal", "vasprintf.c", true},
        {"__vsnprintf_internal", "vsnprintf.c", false},
        {"ggc_realloc(void*, unsigned long)", "", true},
        {"v8::internal::Heap::AllocateExternalBackingStore", "", true},
        {"v8::ArrayBuffer::NewBackingStoreForNodeLTS(v8::Isolate*, unsigned long)", "", true},
        {"node::Buffer::New(v8::Isolate*, unsigned long)", "", false},
        {"ggc_realloc_all(void*)", "", false},
        {"g_malloc0", "", true},
        {"__rust_alloc", "", true},
        {"alloc::raw_vec::RawVec<T,A>::grow_one", "", true},
        {"core::ops::function::FnOnce::call_once", "/rustc/abc/library/core/src/ops/function.rs",
         true},
        {"bytes::bytes_mut::BytesMut::with_capacity", "", true},
        {"<bytes::bytes::Bytes as core::clone::Clone>::clone", "", true},
        {"<&mut tokio::sync::mpsc::block::Block<T> as core::ops::Drop>::drop", "", true},
        {"<two_heaps::Own as core::alloc::global::GlobalAlloc>::alloc", "", true},
        {"<app::Job as core::clone::Clone>::clone", "", false},
        {"<app::Job as app::GlobalAllocations>::count", "", false},
        {"tokio::runtime::task::core::Cell<T,S>::new", "", true},
        {"tokio_app::serve", "", false},
        {"futures_util::stream::FuturesUnordered<Fut>::push", "", true},
        {"alloc::vec::Vec<T,A>::push", "", true},
        {"alloc::my_pool::take", "", false}, // a program's own name
        {"bytes::Counter::add(int)", "", false},
        {"boost::container::vector<int>::reserve(unsigned long)", "", true},
        {"absl::lts_20220623::container_internal::Allocate", "", true},
        {"folly::fbstring_core<char>::initLarge(char const*, unsigned long)", "", true},
        {"QString::fromUtf8(char const*, int)", "", true},
        {"QStringView::size() const", "", false},
        {"uv__malloc", "", true},
        {"std::vector<int> app::load(char const*)", "", false},
        {"main", "", false},
        {"operator newest(int)", "", true}, // impossible as a C++ name: it would be two words
        {"app::malloc(unsigned long)", "", false},
        {"malloc_everything", "", false},
        {"stdx::make()", "", false},
        {"core::App::load()", "/src/app.cpp", false},
        {"", "", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        if (is_wrapper_frame(cases[i].function, cases[i].file) != cases[i].wanted) {
            fail_msg("\"%s\" in \"%s\" should %sbe a wrapper", cases[i].function, cases[i].file,
                     cases[i].wanted ? "" : "not ");
        }
    }
}

static void allocators_of_programs_are_wrappers(void **state)
{
    (void)state;
    static const struct {
        const char *function;
        bool wanted;
    } cases[] = {
        {"futures_app::serve", false},
        {"nlohmann::json_abi_v3_11_2::basic_json<std::map>::basic_json", true},
        {"app::Pool<int>::allocate(unsigned long)", true},
        {"int* app::Pool<int>::allocate(unsigned long, void const*)", true},
        {"app::Memory::do_allocate(unsigned long, unsigned long)", true},
        {"app::Seats::allocate(app::Guest const&)", false},
        {"allocate(unsigned long)", false},
        {"app::_::__rg_alloc", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        if (is_wrapper_frame(cases[i].function, "") != cases[i].wanted) {
            fail_msg("%s", cases[i].function);
        }
    }
}

static void folders_of_libraries_are_known(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        const char *folder;
    } cases[] = {
        {"/home/a/.cargo/registry/src/index.crates.io-6f17d22bba15001f/regex-1.7.1/src/exec.rs",
         "/home/a/.cargo/registry/src/index.crates.io-6f17d22bba15001f/regex-1.7.1/"},
        {"/home/a/.cargo/git/checkouts/own-12/3ab/src/lib.rs",
         "/home/a/.cargo/git/checkouts/own-12/3ab/"},
        {"/usr/share/cargo/registry/bytes-1.2.1/src/bytes.rs",
         "/usr/share/cargo/registry/bytes-1.2.1/"},
        {"/usr/include/boost/function.hpp", "/usr/include/"},
        {"/usr/local/include/fmt/format.h", "/usr/local/include/"},
        {"/usr/include/c++/12/bits/stl_vector.h", ""},
        {"/home/a/app/src/main.rs", ""},
        {"/home/a/app/usr/share/map.cpp", ""},
        {"/registry/src/", ""},
        {"/registry/src/x/", ""},
        {"", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const size_t len = library_folder_len(cases[i].file);
        if (len != strlen(cases[i].folder) || strncmp(cases[i].file, cases[i].folder, len) != 0) {
            fail_msg("%zu of %s", len, cases[i].file);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_of_libraries_are_known),
        cmocka_unit_test(allocators_of_programs_are_wrappers),
        cmocka_unit_test(names_are_shortened_without_losing_what_they_name),
        cmocka_unit_test(namespaces_without_a_name_are_removed),
        cmocka_unit_test(any_brackets_make_shorter_forms),
        cmocka_unit_test(a_sentence_has_the_ends_of_a_long_name),
        cmocka_unit_test(wrapper_frames_is_reported_from_what_people_wrote),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
