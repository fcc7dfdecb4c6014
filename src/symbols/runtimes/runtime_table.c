// SPDX-License-Identifier: MIT
#include "symbols/runtimes/runtime_table.h"

#include <gelf.h>
#include <string.h>

#include "base/compiler.h"
#include "session/runtime_settings.h"
#include "symbols/elf/symbol_table.h"

// A program of one runtime may link the library of another. So the table has only functions that
// a runtime itself defines, and none that its extensions define.
static const struct runtime table[] = {
    {
        .key = "go",
        .name = "Go",
        .is = "is a Go program",
        .sections = {".note.go.buildid", ".gopclntab", ".data.rel.ro.gopclntab", ".go.buildinfo",
                     ".go.module"},
        .hides = "cairn sees what its C code allocates, but not which Go code called it, nor Go's "
                 "own heap",
        .instead = "runtime/pprof writes profiles of Go's heap, which 'cairn report' opens",
        .lacks_malloc = true,
        .tried = "1.19",
    },
    {
        .key = "python",
        .name = "Python",
        .is = "runs Python",
        .function = "PyMem_RawMalloc",
        .libraries = {"libpython3"},
        .hides = "small objects come from arenas of its own allocator (pymalloc, up to 512 bytes, "
                 "or mimalloc)",
        .setting = "PYTHONMALLOC=malloc",
        .environment = RUNTIME_SETTING_OF_PYTHON,
        .settings = RUNTIME_SETTING_PYTHON,
        .tried = "3.11, 3.13",
    },
    {
        .key = "php",
        .name = "PHP",
        .is = "runs PHP",
        .function = "_emalloc",
        .libraries = {"libphp"},
        .hides = "its objects come from chunks of its own allocator (Zend)",
        .setting = "USE_ZEND_ALLOC=0",
        .environment = RUNTIME_SETTING_OF_PHP,
        .settings = RUNTIME_SETTING_PHP,
        .tried = "8.2",
    },
    {
        .key = "erlang",
        .name = "Erlang",
        .is = "runs Erlang",
        .function = "enif_alloc",
        .hides = "heaps of its processes, tables and binaries come from carriers of its own "
                 "allocators (erts_alloc)",
        .setting = "ERL_FLAGS='+Mea min'",
        .environment = RUNTIME_SETTING_OF_ERLANG,
        .settings = RUNTIME_SETTING_ERLANG,
        .tried = "OTP 25",
    },
    {
        .key = "java",
        .name = "Java",
        .is = "runs a Java virtual machine",
        .function = "JNI_CreateJavaVM",
        .libraries = {"libjvm.so"},
        .hides = "cairn sees what the machine itself allocates, not the objects in the Java heap",
        .instead = "'jcmd PID GC.class_histogram' counts these",
        .tried = "OpenJDK 17",
    },
    {
        .key = "v8",
        .name = "JavaScript (V8)",
        .is = "runs JavaScript by V8",
        .function = "_ZN2v87Isolate8AllocateEv",
        .libraries = {"libnode.so", "libv8.so"},
        .hides = "cairn sees what C++ and array buffers allocate, not the objects in V8's heap",
        .instead = "'node --heap-prof' writes a profile of these",
        .tried = "Node.js 20",
    },
    {
        .key = "ruby",
        .name = "Ruby",
        .is = "runs Ruby",
        .function = "ruby_init",
        .libraries = {"libruby"},
        .hides = "cairn sees what objects hold beyond their slots, not the slots themselves",
        .instead = "ObjectSpace.count_objects_size counts these",
        .tried = "3.1",
    },
    {
        .key = "ocaml",
        .name = "OCaml",
        .is = "runs OCaml",
        .function = "caml_main",
        .libraries = {"libcamlrun", "libasmrun"},
        .hides = "cairn sees the chunks of its heap, not the values in them",
        .instead = "Gc.stat counts these",
        .tried = "4.13",
    },
    {
        .key = "luajit",
        .name = "LuaJIT",
        .is = "runs LuaJIT",
        .function = "luaJIT_setmode",
        .libraries = {"libluajit"},
        .hides = "its objects come from segments of its own allocator (lj_alloc)",
        .instead = "collectgarbage('count') tells their size",
        .tried = "2.1.0-beta3",
    },
    {
        .key = "mono",
        .name = "Mono",
        .is = "runs Mono",
        .function = "mono_jit_init",
        .libraries = {"libmonosgen", "libmono-"},
        .hides = "cairn sees what the runtime itself allocates, not the objects in its heap",
        .instead = "GC.GetTotalMemory tells their size",
        .tried = "6.8",
    },
    {
        .key = "libgc",
        .name = "Boehm's collector",
        .is = "uses the collector libgc",
        .function = "GC_malloc",
        .libraries = {"libgc.so"},
        .hides = "the collector's objects come from chunks of its own heap",
        .instead = "GC_get_heap_size tells its size",
        .tried = "Guile 3.0",
    },
    {
        .key = "dotnet",
        .name = ".NET",
        .is = "runs .NET",
        .function = "MetaDataGetDispenser", // also of a program that is one file
        .libraries = {"libcoreclr.so"},
        .hides = "cairn sees what the runtime itself allocates, not the objects in its heap",
        .instead = "GC.GetTotalMemory tells their size",
        .tried = "10.0",
    },
};

const struct runtime *runtime_table_row(size_t index)
{
    return index < ARRAY_LEN(table) ? table + index : NULL;
}

const struct runtime *runtime_table_named(const char *key)
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        if (strcmp(table[i].key, key) == 0) {
            return table + i;
        }
    }
    return NULL;
}

const struct runtime *runtime_table_of_library(struct bytes path)
{
    const char *slash = path.len > 0 ? memrchr(path.data, '/', path.len) : NULL;
    const size_t before = slash != NULL ? (size_t)(slash + 1 - (const char *)path.data) : 0;
    const char *name = (const char *)path.data + before;
    const size_t len = path.len - before;
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        for (const char *const *beginning = table[i].libraries; *beginning != NULL; beginning++) {
            const size_t wanted = strlen(*beginning);
            if (len >= wanted && memcmp(name, *beginning, wanted) == 0) {
                return table + i;
            }
        }
    }
    return NULL;
}

static const struct runtime *of_section(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        for (const char *const *section = table[i].sections; *section != NULL; section++) {
            if (strcmp(name, *section) == 0) {
                return table + i;
            }
        }
    }
    return NULL;
}

static const struct runtime *find_section(Elf *elf)
{
    size_t names = 0;
    const struct runtime *found = NULL;
    if (elf_getshdrstrndx(elf, &names) != 0) {
        return NULL; // it has no sections
    }
    for (Elf_Scn *section = NULL; found == NULL && (section = elf_nextscn(elf, section)) != NULL;) {
        GElf_Shdr header;
        const char *name =
            gelf_getshdr(section, &header) != NULL ? elf_strptr(elf, names, header.sh_name) : NULL;
        found = name != NULL ? of_section(name) : NULL;
    }
    return found;
}

static const struct runtime *of_function(const char *name)
{
    static const char beginnings[] = "GJMP_cejlmr"; // of all such names: most have another
    if (strchr(beginnings, name[0]) == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        const char *wanted = table[i].function;
        if (wanted != NULL && name[0] == wanted[0] && name[1] == wanted[1] &&
            strncmp(name, wanted, strlen(wanted)) == 0 &&
            (name[strlen(wanted)] == '\0' || name[strlen(wanted)] == '@')) { // NAME@VERSION
            return table + i;
        }
    }
    return NULL;
}

// Find a row by the functions of a table of symbols. *out_count: how many there are, at least, if
// there is no such row.
static const struct runtime *find_function(Elf *elf, uint32_t kind, size_t *out_count)
{
    struct symbol_table table_of_file;
    struct function_symbol function;
    const struct runtime *found = NULL;
    *out_count = 0;
    (void)symbol_table_open(&table_of_file, elf, kind); // a missing one is empty
    while (found == NULL && symbol_table_next(&table_of_file, &function)) {
        found = of_function(function.name);
        (*out_count)++;
    }
    return found;
}

static bool has_interpreter(Elf *elf)
{
    size_t count = 0;
    GElf_Phdr header;
    (void)elf_getphdrnum(elf, &count); // 0 without any
    for (size_t i = 0; i < count && gelf_getphdr(elf, (int)i, &header) != NULL; i++) {
        if (header.p_type == PT_INTERP) {
            return true;
        }
    }
    return false;
}

// A static program exports nothing: there it is any function.
static const struct runtime *find_any_function(Elf *elf)
{
    size_t count = 0;
    const struct runtime *found = find_function(elf, SHT_DYNSYM, &count);
    return found == NULL && count == 0 && !has_interpreter(elf)
               ? find_function(elf, SHT_SYMTAB, &count)
               : found;
}

const struct runtime *runtime_table_of_module(const struct elf_file *module, const char *path)
{
    const struct bytes name = {.data = (const uint8_t *)path, .len = strlen(path)};
    const struct runtime *found = runtime_table_of_library(name);
    if (found == NULL && module->elf != NULL) {
        found = find_section(module->elf) ?: find_any_function(module->elf);
    }
    return found;
}

bool runtime_is_open(const struct runtime *runtime, struct bytes environment)
{
    const size_t wanted = runtime->environment != NULL ? strlen(runtime->environment) : 0;
    const char *at = (const char *)environment.data;
    const char *end = at + environment.len;
    while (wanted > 0 && at < end) {
        const size_t len = strnlen(at, (size_t)(end - at));
        if (len >= wanted && memcmp(at, runtime->environment, wanted) == 0) {
            return true;
        }
        at += len + 1;
    }
    return false;
}

uint32_t runtime_table_settings(struct bytes environment)
{
    uint32_t found = 0;
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        found |= runtime_is_open(table + i, environment) ? table[i].settings : 0;
    }
    return found;
}

static void append_advice(const struct runtime *runtime, struct strbuf *out)
{
    if (runtime->setting != NULL) {
        strbuf_printf(out, "cairn sees each of them only with %s", runtime->setting);
    } else {
        strbuf_append_text(out, runtime->instead);
    }
}

void runtime_explain(const struct runtime *runtime, struct strbuf *out)
{
    strbuf_printf(out, "%s: %s; ", runtime->is, runtime->hides);
    append_advice(runtime, out);
}

void runtime_explain_static(const struct runtime *runtime, struct strbuf *out)
{
    strbuf_printf(out, "static %s program; ", runtime->name);
    append_advice(runtime, out);
}
