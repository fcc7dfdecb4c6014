// SPDX-License-Identifier: MIT
#include "inject/allocators/allocator_names.h"

#include <string.h>

#include "base/compiler.h"
#include "base/search.h"

// Of the malloc family, with any prefix. Sorted by name, as is the other table.
static const struct allocator_form family[] = {
    {.name = "aligned_alloc", .hook = AGENT_ALIGNED_ALLOC},
    {.name = "calloc", .hook = AGENT_CALLOC},
    {.name = "cfree", .hook = AGENT_FREE},
    {.name = "dallocx", .hook = AGENT_FREE},
    {.name = "free", .hook = AGENT_FREE},
    {.name = "free_aligned_sized", .hook = AGENT_FREE},
    {.name = "free_sized", .hook = AGENT_FREE},
    {.name = "malloc", .hook = AGENT_MALLOC},
    {.name = "mallocx", .hook = AGENT_MALLOC},
    {.name = "memalign", .hook = AGENT_ALIGNED_ALLOC},
    {.name = "posix_memalign", .hook = AGENT_POSIX_MEMALIGN},
    {.name = "pvalloc", .hook = AGENT_MALLOC},
    {.name = "rallocx", .hook = AGENT_REALLOC},
    {.name = "realloc", .hook = AGENT_REALLOC},
    {.name = "reallocarray", .hook = AGENT_REALLOCARRAY},
    {.name = "reallocf", .hook = AGENT_REALLOCF},
    {.name = "sdallocx", .hook = AGENT_FREE},
    {.name = "valloc", .hook = AGENT_MALLOC},
    {.name = "vfree", .hook = AGENT_FREE},
    {.name = "xallocx", .hook = AGENT_XALLOCX},
};

// _rjem_ is of jemalloc in Rust crates, __libc_ of glibc and musl, __wrap_ of linkers' --wrap.
static const struct {
    const char *text;
    const char *owner; // NULL: any allocator
} prefixes[] = {
    {"je_", "jemalloc"}, {"_rjem_", "jemalloc"}, {"mi_", "mimalloc"},  {"tc_", "tcmalloc"},
    {"__libc_", "libc"}, {"__wrap_", NULL},      {"scalable_", "tbb"}, {"sn_", "snmalloc"},
};

// Known by their full names: mimalloc's functions that inline their allocation, gperftools', TBB's,
// and the operators by the names of the Itanium C++ ABI.
static const struct allocator_form others[] = {
    {.name = "_Exit", .hook = AGENT_EXIT},
    {.name = "_ZdaPv", .hook = AGENT_FREE, .is_operator = true},
    {.name = "_ZdaPvRKSt9nothrow_t", .hook = AGENT_FREE, .is_operator = true},
    {.name = "_ZdaPvSt11align_val_t", .hook = AGENT_FREE, .is_operator = true},
    {.name = "_ZdaPvSt11align_val_tRKSt9nothrow_t", .hook = AGENT_FREE, .is_operator = true},
    {.name = "_ZdaPvm", .hook = AGENT_FREE, .is_operator = true},
    {.name = "_ZdaPvmSt11align_val_t", .hook = AGENT_FREE, .is_operator = true},
    {.name = "_ZdlPv", .hook = AGENT_FREE, .is_operator = true},
    {.name = "_ZdlPvRKSt9nothrow_t", .hook = AGENT_FREE, .is_operator = true},
    {.name = "_ZdlPvSt11align_val_t", .hook = AGENT_FREE, .is_operator = true},
    {.name = "_ZdlPvSt11align_val_tRKSt9nothrow_t", .hook = AGENT_FREE, .is_operator = true},
    {.name = "_ZdlPvm", .hook = AGENT_FREE, .is_operator = true},
    {.name = "_ZdlPvmSt11align_val_t", .hook = AGENT_FREE, .is_operator = true},
    {.name = "_Znam", .hook = AGENT_NEW, .is_operator = true, .nothrow = "_ZnamRKSt9nothrow_t"},
    {.name = "_ZnamRKSt9nothrow_t", .hook = AGENT_MALLOC, .is_operator = true},
    {.name = "_ZnamSt11align_val_t",
     .hook = AGENT_NEW_ALIGNED,
     .is_operator = true,
     .nothrow = "_ZnamSt11align_val_tRKSt9nothrow_t"},
    {.name = "_ZnamSt11align_val_tRKSt9nothrow_t", .hook = AGENT_MALLOC, .is_operator = true},
    {.name = "_Znwm", .hook = AGENT_NEW, .is_operator = true, .nothrow = "_ZnwmRKSt9nothrow_t"},
    {.name = "_ZnwmRKSt9nothrow_t", .hook = AGENT_MALLOC, .is_operator = true},
    {.name = "_ZnwmSt11align_val_t",
     .hook = AGENT_NEW_ALIGNED,
     .is_operator = true,
     .nothrow = "_ZnwmSt11align_val_tRKSt9nothrow_t"},
    {.name = "_ZnwmSt11align_val_tRKSt9nothrow_t", .hook = AGENT_MALLOC, .is_operator = true},
    {.name = "_dl_debug_state", .hook = AGENT_DL_DEBUG_STATE},
    {.name = "_exit", .hook = AGENT_EXIT},
    {.name = "brk", .hook = AGENT_BRK},
    {.name = "execve", .hook = AGENT_EXECVE},
    {.name = "execveat", .hook = AGENT_EXECVEAT},
    {.name = "fexecve", .hook = AGENT_FEXECVE},
    {.name = "mi_calloc_aligned", .hook = AGENT_CALLOC},
    {.name = "mi_calloc_aligned_at", .hook = AGENT_CALLOC},
    {.name = "mi_expand", .hook = AGENT_REALLOC},
    {.name = "mi_free_aligned", .hook = AGENT_FREE},
    {.name = "mi_free_size", .hook = AGENT_FREE},
    {.name = "mi_free_size_aligned", .hook = AGENT_FREE},
    {.name = "mi_heap_calloc", .hook = AGENT_HEAP_CALLOC},
    {.name = "mi_heap_calloc_aligned", .hook = AGENT_HEAP_CALLOC},
    {.name = "mi_heap_malloc", .hook = AGENT_ALIGNED_ALLOC},
    {.name = "mi_heap_malloc_aligned", .hook = AGENT_ALIGNED_ALLOC},
    {.name = "mi_heap_malloc_small", .hook = AGENT_ALIGNED_ALLOC},
    {.name = "mi_heap_mallocn", .hook = AGENT_HEAP_CALLOC},
    {.name = "mi_heap_realloc", .hook = AGENT_HEAP_REALLOC},
    {.name = "mi_heap_realloc_aligned", .hook = AGENT_HEAP_REALLOC},
    {.name = "mi_heap_reallocn", .hook = AGENT_HEAP_REALLOCARRAY},
    {.name = "mi_heap_realpath", .hook = AGENT_STRDUP},
    {.name = "mi_heap_recalloc", .hook = AGENT_HEAP_REALLOCARRAY},
    {.name = "mi_heap_recalloc_aligned", .hook = AGENT_HEAP_REALLOCARRAY},
    {.name = "mi_heap_rezalloc", .hook = AGENT_HEAP_REALLOC},
    {.name = "mi_heap_rezalloc_aligned", .hook = AGENT_HEAP_REALLOC},
    {.name = "mi_heap_strdup", .hook = AGENT_STRDUP},
    {.name = "mi_heap_strndup", .hook = AGENT_STRDUP},
    {.name = "mi_heap_zalloc", .hook = AGENT_ALIGNED_ALLOC},
    {.name = "mi_heap_zalloc_aligned", .hook = AGENT_ALIGNED_ALLOC},
    {.name = "mi_malloc_aligned", .hook = AGENT_MALLOC},
    {.name = "mi_malloc_aligned_at", .hook = AGENT_MALLOC},
    {.name = "mi_malloc_small", .hook = AGENT_MALLOC},
    {.name = "mi_mallocn", .hook = AGENT_CALLOC},
    {.name = "mi_new", .hook = AGENT_NEW, .nothrow = "mi_new_nothrow"},
    {.name = "mi_new_aligned", .hook = AGENT_NEW_ALIGNED, .nothrow = "mi_new_aligned_nothrow"},
    {.name = "mi_new_aligned_nothrow", .hook = AGENT_MALLOC},
    {.name = "mi_new_nothrow", .hook = AGENT_MALLOC},
    {.name = "mi_realloc_aligned", .hook = AGENT_REALLOC},
    {.name = "mi_realloc_aligned_at", .hook = AGENT_REALLOC},
    {.name = "mi_reallocn", .hook = AGENT_REALLOCARRAY},
    {.name = "mi_realpath", .hook = AGENT_STRDUP},
    {.name = "mi_recalloc", .hook = AGENT_REALLOCARRAY},
    {.name = "mi_recalloc_aligned", .hook = AGENT_REALLOCARRAY},
    {.name = "mi_recalloc_aligned_at", .hook = AGENT_REALLOCARRAY},
    {.name = "mi_rezalloc", .hook = AGENT_REALLOC},
    {.name = "mi_rezalloc_aligned", .hook = AGENT_REALLOC},
    {.name = "mi_rezalloc_aligned_at", .hook = AGENT_REALLOC},
    {.name = "mi_strdup", .hook = AGENT_STRDUP},
    {.name = "mi_strndup", .hook = AGENT_STRDUP},
    {.name = "mi_zalloc", .hook = AGENT_MALLOC},
    {.name = "mi_zalloc_aligned", .hook = AGENT_MALLOC},
    {.name = "mi_zalloc_aligned_at", .hook = AGENT_MALLOC},
    {.name = "mi_zalloc_small", .hook = AGENT_MALLOC},
    {.name = "mmap", .hook = AGENT_MMAP},
    {.name = "mmap64", .hook = AGENT_MMAP},
    {.name = "mremap", .hook = AGENT_MREMAP},
    {.name = "munmap", .hook = AGENT_MUNMAP},
    {.name = "prctl", .hook = AGENT_PRCTL},
    {.name = "prlimit", .hook = AGENT_PRLIMIT},
    {.name = "prlimit64", .hook = AGENT_PRLIMIT},
    {.name = "sbrk", .hook = AGENT_SBRK},
    {.name = "scalable_aligned_free", .hook = AGENT_FREE},
    {.name = "scalable_aligned_malloc", .hook = AGENT_MALLOC},
    {.name = "scalable_aligned_realloc", .hook = AGENT_REALLOC},
    {.name = "setrlimit", .hook = AGENT_SETRLIMIT},
    {.name = "setrlimit64", .hook = AGENT_SETRLIMIT},
    {.name = "syscall", .hook = AGENT_SYSCALL},
    {.name = "tc_delete", .hook = AGENT_FREE},
    {.name = "tc_delete_nothrow", .hook = AGENT_FREE},
    {.name = "tc_delete_sized", .hook = AGENT_FREE},
    {.name = "tc_deletearray", .hook = AGENT_FREE},
    {.name = "tc_deletearray_nothrow", .hook = AGENT_FREE},
    {.name = "tc_deletearray_sized", .hook = AGENT_FREE},
    {.name = "tc_malloc_skip_new_handler", .hook = AGENT_MALLOC},
    {.name = "tc_new", .hook = AGENT_NEW, .nothrow = "tc_new_nothrow"},
    {.name = "tc_new_nothrow", .hook = AGENT_MALLOC},
    {.name = "tc_newarray", .hook = AGENT_NEW, .nothrow = "tc_newarray_nothrow"},
    {.name = "tc_newarray_nothrow", .hook = AGENT_MALLOC},
};

static const struct allocator_form *
search(const struct allocator_form *forms, size_t count, const char *name, size_t len)
{
    const size_t first = FIRST_WHERE(at, count, strncmp(name, forms[at].name, len) <= 0);
    return first < count && strncmp(name, forms[first].name, len) == 0 &&
                   forms[first].name[len] == '\0'
               ? forms + first
               : NULL;
}

// In C++ nearly all names begin with _Z, and those of the operators with _Zd or _Zn.
bool allocator_name_may_be_known(const char *name)
{
    static const char beginnings[] = "_abcdefjmprstvx"; // of the tables above
    if (name[0] == '_' && name[1] == 'Z') {
        return name[2] == 'd' || name[2] == 'n';
    }
    return memchr(beginnings, name[0], sizeof(beginnings) - 1) != NULL;
}

const struct allocator_form *allocator_form_find(const char *name, size_t len)
{
    if (!allocator_name_may_be_known(name)) {
        return NULL;
    }
    const struct allocator_form *form = search(family, ARRAY_LEN(family), name, len);
    if (form == NULL) {
        form = search(others, ARRAY_LEN(others), name, len);
    }
    for (size_t i = 0; form == NULL && i < ARRAY_LEN(prefixes); i++) {
        const size_t prefix_len = strlen(prefixes[i].text);
        if (len > prefix_len && strncmp(name, prefixes[i].text, prefix_len) == 0) {
            form = search(family, ARRAY_LEN(family), name + prefix_len, len - prefix_len);
        }
    }
    return form;
}

const char *allocator_name_owner(const char *name, size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
        const size_t prefix_len = strlen(prefixes[i].text);
        if (prefixes[i].owner != NULL && len > prefix_len &&
            strncmp(name, prefixes[i].text, prefix_len) == 0) {
            return prefixes[i].owner;
        }
    }
    const bool is_of_family = search(family, ARRAY_LEN(family), name, len) != NULL;
    return is_of_family && name[len - 1] == 'x' ? "jemalloc" : NULL;
}

bool allocator_name_is_private(const char *name, size_t len)
{
    const struct allocator_form *form = allocator_form_find(name, len);
    if (form == NULL || form->is_operator || strncmp(name, "_", 1) == 0 ||
        !agent_hook_is_allocators(form->hook)) { // libc's alone
        return false;
    }
    const bool is_of_family = search(family, ARRAY_LEN(family), name, len) != NULL;
    return !is_of_family || name[len - 1] == 'x'; // mallocx and its kin
}

const char *allocator_name_sanitizer(const char *name)
{
    static const struct {
        const char *function;
        const char *sanitizer;
    } run_times[] = {
        {"__asan_init", "AddressSanitizer"},      {"__hwasan_init", "HWAddressSanitizer"},
        {"__msan_init", "MemorySanitizer"},       {"__tsan_init", "ThreadSanitizer"},
        {"dfsan_set_label", "DataFlowSanitizer"},
    };
    for (size_t i = 0; i < ARRAY_LEN(run_times); i++) {
        if (strcmp(name, run_times[i].function) == 0) {
            return run_times[i].sanitizer;
        }
    }
    return NULL;
}

void allocator_names_release(struct allocator_name_vec *names)
{
    for (size_t i = 0; i < names->len; i++) {
        free(names->items[i].name);
    }
    allocator_name_vec_release(names);
}

// Append one `kind=name` of `len` bytes.
static enum err
parse_one(const char *text, size_t len, struct allocator_name_vec *names, struct err_info *info)
{
    const char *equals = memchr(text, '=', len);
    if (equals == NULL || equals == text || equals + 1 == text + len) {
        return err_set(info, ERR_INVALID, "'%.*s' is not like malloc=my_alloc", (int)len, text);
    }
    const size_t kind_len = (size_t)(equals - text);
    const struct allocator_form *form = search(family, ARRAY_LEN(family), text, kind_len);
    if (form == NULL) {
        return err_set(
            info, ERR_INVALID,
            "'%.*s' is not a function of the malloc family, such as malloc, free, calloc, "
            "realloc, aligned_alloc, posix_memalign, reallocarray, rallocx or sdallocx",
            (int)kind_len, text);
    }
    TRY(allocator_name_vec_reserve(names, 1));
    char *name = strndup(equals + 1, len - kind_len - 1);
    if (name == NULL) {
        return ERR_NO_MEMORY;
    }
    names->items[names->len++] = (struct allocator_name){.hook = form->hook, .name = name};
    return ERR_OK;
}

enum err
allocator_names_parse(const char *text, struct allocator_name_vec *names, struct err_info *info)
{
    for (;;) {
        const size_t len = strcspn(text, ",");
        TRY(parse_one(text, len, names, info));
        if (text[len] == '\0') {
            return ERR_OK;
        }
        text += len + 1;
    }
}
