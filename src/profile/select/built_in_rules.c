// SPDX-License-Identifier: MIT
#include "profile/select/built_in_rules.h"

#include "base/compiler.h"

// Blocks that the C library and other widely used libraries allocate once, or once per thread, and
// keep. No program can free them. The measure is what valgrind frees before it counts
// (__libc_freeres, __gnu_cxx::__freeres), and what LeakSanitizer finds by a pointer of the
// library's own. The list contains nothing that the program requested and can free: a FILE, an
// iconv_t, a locale_t. Names within glibc need its debug symbols. Without them only the exported
// caller has a name, so it is listed too, if all allocations below it are the library's own.
static const char *const names[] = {
    "_IO_file_doallocate$",              // buffers of stdio; a leaked FILE leaks fopen's block too
    "^__new_exitfn$",                    // blocks of atexit handlers
    "^__cxa_atexit$",                    // blocks of atexit handlers
    "^tzset_internal$",                  // time zone
    "^tzset$",                           // time zone
    "^localtime$",                       // time zone
    "^localtime_r$",                     // time zone
    "^mktime$",                          // time zone
    "^ctime$",                           // time zone
    "^__gconv_read_conf$",               // character sets
    "^__gconv_load_cache$",              // character sets
    "^__gconv_find_transform$",          // character sets
    "^__wcsmbs_load_conv$",              // character sets
    "^mbstowcs$",                        // character sets
    "^_nl_intern_locale_data$",          // locales
    "^_nl_make_l10nflist$",              // locales
    "^_nl_find_locale$",                 // locales
    "^setlocale$",                       // locales
    "^__GI_setlocale$",                  // locales
    "^textdomain$",                      // translations
    "^__textdomain$",                    // translations
    "^bindtextdomain$",                  // translations
    "^__bindtextdomain$",                // translations
    "^__dcigettext$",                    // translations
    "^dlerror$",                         // message of dlerror
    "^__dlerror$",                       // message of dlerror
    "^__nss_module_allocate$",           // name services
    "__nss_database_get$",               // name services
    "__nss_*_lookup2$",                  // name services
    "__resolv_context_get$",             // a thread's resolver
    "^getpwuid$",                        // static result buffers
    "^getpwnam$",                        // static result buffers
    "^getgrgid$",                        // static result buffers
    "^getgrnam$",                        // static result buffers
    "^gethostbyname$",                   // static result buffers
    "^_dl_non_dynamic_init$",            // search paths of the loader in a static program
    "^allocate_dtv",                     // thread-local storage of threads that still run
    "^_GLOBAL__sub_I_eh_alloc.cc$",      // libstdc++'s memory for exceptions, if linked statically
    "^std::ios_base::sync_with_stdio(",  // buffers of cin, cout and the like
    "^pthread_setspecific$",             // values of a thread that still runs
    "__pthread_setspecific$",            // values of a thread that still runs
    "^__cxa_thread_atexit_impl$",        // destructors of thread-local objects
    "^std::sys::*stack_overflow::",      // Rust: thread information of the main thread
    "^std::thread::current::init",       // Rust: the handle of the main thread
    "^std::io::stdio::stdin",            // Rust: the buffer of stdin
    "^std::backtrace_rs::",              // Rust: debug information that a backtrace has read
    "^g_thread_self$",                   // GLib
    "^g_main_context_new$",              // GLib
    "^g_main_context_default$",          // GLib
    "^g_type_register_*static$",         // GLib: types, which are never unregistered
    "^g_type_register_fundamental$",     // GLib: types
    "^g_type_add_interface_static$",     // GLib: types
    "^g_quark_from_string$",             // GLib: names, which are never freed
    "^g_quark_from_static_string$",      // GLib: names
    "^g_intern_string$",                 // GLib: names
    "^g_intern_static_string$",          // GLib: names
    "^tokio::signal::registry::globals", // tokio: a channel for each signal
    "^tokio::signal::unix::signal_enable",          // tokio: handlers, which stay
    "^parking_lot_core::parking_lot::*_hashtable$", // Rust: the table of waiting threads
    "^node::InitializeOncePerProcess",              // node: certificates, versions, OpenSSL
    "^node::NewIsolate$",         // node: V8's isolate, and what its platform has for it
    "^node::CreateIsolateData$",  // node: data of an isolate
    "^node::NodeMainInstance::~", // node: queues that are allocated while they are emptied
    "^v8::internal::MemoryReducer::ScheduleTimer$", // V8: a timer of its collector
    "^uv_default_loop$",                            // libuv: the default loop
    "^Py_InitializeFromConfig$",      // CPython: the map of its arenas, modules of the interpreter
    "^new_arena$",                    // CPython: the list of its arenas
    "^arena_map_get",                 // CPython: the map of its arenas
    "^Perl_init_i18nl10n$",           // Perl: locales
    "^zend_register_ini_entries",     // PHP: settings
    "^JNI_CreateJavaVM$",             // Java: what its start keeps
    "^JLI_",                          // Java: the launcher's options
    "^_GLOBAL__sub_I_imageFile.cpp$", // Java: tables of the reader of its modules
};

// Off-heap memory, strings and arrays of native code, and its references.
static const char *const requested_of_jvm[] = {
    "^Unsafe_", "^jni_GetString", "^jni_Get*ArrayElements", "^jni_New*GlobalRef", NULL,
};

// Functions that start an interpreter, which frees nothing of that when it ends. The program runs
// outside of them, and what its extensions allocate in them is not in the interpreter's file.
static const char *const start_of_perl[] = {"^perl_construct$", "^perl_parse$", NULL};
static const char *const start_of_ruby[] = {"^ruby_setup$", "^ruby_options$", NULL};
static const char *const start_of_php[] = {"^php_module_startup$", NULL};
static const char *const start_of_class[] = {"^g_type_class_ref$", NULL};

static const struct code_rule code[] = {
    // Modules that stay loaded, search paths, thread-local storage. Names would not do:
    // constructors of dlopen'ed modules run below the same functions, and their allocations are the
    // program's.
    {.words = "ld-linux, innermost", .module = "/ld-linux", .caller = ""},
    // libstdc++'s memory for exceptions, allocated when the library is loaded.
    {.words = "libstdc++ < ld-linux, innermost", .module = "libstdc++.so", .caller = "/ld-linux"},
    // Allocations of a separate allocator library for itself. For those that it passes on, the
    // innermost frame is its caller's.
    {.words = "libjemalloc, innermost", .module = "/libjemalloc", .caller = ""},
    {.words = "libtcmalloc, innermost", .module = "/libtcmalloc", .caller = ""},
    {.words = "libmimalloc, innermost", .module = "/libmimalloc", .caller = ""},
    // Types and names that constructors of GLib's libraries register.
    {.words = "GLib < ld-linux, innermost",
     .module = "/libg*-2.0.so",
     .caller = "/ld-linux",
     .is_run = true},
    // What GLib makes for a class of objects, once: signals, properties, tables. Classes stay.
    {.words = "GLib < g_type_class_ref, innermost",
     .module = "/libg*-2.0.so",
     .caller = "",
     .is_run = true,
     .within = start_of_class},
    {.words = "perl < perl_construct or perl_parse, innermost",
     .module = "/bin/perl",
     .caller = "",
     .is_run = true,
     .within = start_of_perl},
    {.words = "libruby < ruby_setup or ruby_options, innermost",
     .module = "/libruby",
     .caller = "",
     .is_run = true,
     .within = start_of_ruby},
    {.words = "php < php_module_startup, innermost",
     .module = "/bin/php",
     .caller = "",
     .is_run = true,
     .within = start_of_php},
    // The Java virtual machine: classes, compiled code, its threads. It frees nothing of that when
    // it ends. What Java and native code request of it themselves is theirs.
    {.words = "libjvm, innermost, not for others",
     .module = "/libjvm.so",
     .caller = "",
     .is_run = true,
     .no_function = requested_of_jvm},
    // node: tasks that wait as it ends. They may run the program's code, farther in.
    {.words = "node::PerIsolatePlatformData::, innermost after std",
     .site = "^node::PerIsolatePlatformData::"},
    // Rust: the list of tests, the channel and the names of their threads, which libtest has in
    // hand when it ends the process. Each stack of a test has frames of libtest, but farther out.
    {.words = "test::, innermost after std", .site = "^test::"},
};

const struct built_in_rules built_in_rules = {
    .names = names,
    .name_count = ARRAY_LEN(names),
    .code = code,
    .code_count = ARRAY_LEN(code),
};
