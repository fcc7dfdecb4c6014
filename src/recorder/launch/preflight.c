// SPDX-License-Identifier: MIT
#include "recorder/launch/preflight.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/os/file.h"
#include "session/exec_check.h"
#include "symbols/elf/symbol_table.h"

#define SCRIPT_DEPTH_MAX  4u   // as fs/exec.c: BINPRM_MAX_RECURSION
#define SCRIPT_LINE_BYTES 256u // as the kernel's BINPRM_BUF_SIZE

// libc's execvp searches it when PATH is not set: confstr(_CS_PATH).
#define DEFAULT_PATH "/bin:/usr/bin"

// The facts in an ELF file that decide whether it can be recorded.
struct elf_facts {
    const struct runtime *runtime; // NULL: none is known
    bool exports_malloc;
    bool imports_private;  // calls an allocator of a library by names that are not libc's
    bool is_sanitized;     // a sanitizer is linked in, which lays out the address space
    const char *allocator; // name of the allocator that it exports, or NULL
};

static enum err refuse(struct preflight *out, int status)
{
    out->exit_status = status;
    return status == PREFLIGHT_STATUS_NOT_FOUND ? ERR_NOT_FOUND : ERR_UNSUPPORTED;
}

static bool is_runnable_file(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

// Search PATH as execvp(3) does. True: `found` is the file to execute. `denied`: a file exists but
// may not be executed.
static bool search_path(const char *program, struct strbuf *found, bool *denied)
{
    const char *directories = getenv("PATH");
    directories = directories != NULL ? directories : DEFAULT_PATH;
    for (const char *at = directories;; at++) {
        const size_t length = strcspn(at, ":");
        strbuf_clear(found);
        strbuf_append(found, at, length); // an empty entry means the current directory
        strbuf_append_text(found, length > 0 ? "/" : "./");
        strbuf_append_text(found, program);
        if (is_runnable_file(strbuf_text(found))) {
            return true;
        }
        struct stat status;
        *denied = *denied || (stat(strbuf_text(found), &status) == 0 && S_ISREG(status.st_mode));
        at += length;
        if (*at == '\0') {
            return false;
        }
    }
}

// A file of the working directory may be meant, which execvp() does not run either.
static void say_missing(const char *program, struct err_info *info)
{
    struct stat status;
    const bool is_file = stat(program, &status) == 0 && S_ISREG(status.st_mode);
    const char *reason = !is_file ? ""
                         : access(program, X_OK) == 0
                             ? "; write './' before a file of this directory"
                             : ", and the file of this directory is not executable";
    (void)err_set(info, ERR_NOT_FOUND, "'%s' is not in PATH%s", program, reason);
}

static enum err find_program(const char *program, struct preflight *out, struct err_info *info)
{
    bool denied = false;
    if (program[0] == '\0') {
        (void)err_set(info, ERR_NOT_FOUND, "the name of the program is empty");
        return refuse(out, PREFLIGHT_STATUS_NOT_FOUND);
    }
    if (strchr(program, '/') == NULL) {
        if (search_path(program, &out->path, &denied)) {
            return strbuf_result(&out->path);
        }
        if (!denied) {
            say_missing(program, info);
            return refuse(out, PREFLIGHT_STATUS_NOT_FOUND);
        }
        (void)err_set(info, ERR_PERMISSION, "'%s' in PATH is not executable", program);
        return refuse(out, PREFLIGHT_STATUS_CANNOT_RECORD);
    }
    strbuf_append_text(&out->path, program);
    struct stat status;
    if (stat(program, &status) != 0) {
        const int failure = errno;
        (void)err_set_errno(info, failure, "cannot run '%s'", program);
        const bool missing = failure == ENOENT || failure == ENOTDIR;
        return refuse(out, missing ? PREFLIGHT_STATUS_NOT_FOUND : PREFLIGHT_STATUS_CANNOT_RECORD);
    }
    if (S_ISDIR(status.st_mode)) {
        (void)err_set(info, ERR_INVALID, "'%s' is a directory", program);
        return refuse(out, PREFLIGHT_STATUS_CANNOT_RECORD);
    }
    if (!is_runnable_file(program)) {
        (void)err_set(info, ERR_PERMISSION, "'%s' is not executable", program);
        return refuse(out, PREFLIGHT_STATUS_CANNOT_RECORD);
    }
    return strbuf_result(&out->path);
}

// Get the interpreter that a script names. Return false if `head` is not the head of a script.
static bool script_interpreter(const char *head, struct strbuf *out)
{
    if (head[0] != '#' || head[1] != '!') {
        return false;
    }
    const char *start = head + 2 + strspn(head + 2, " \t");
    const size_t length = strcspn(start, " \t\n");
    if (length == 0) {
        return false;
    }
    strbuf_clear(out);
    strbuf_append(out, start, length);
    return true;
}

// Follow #! lines to a file that is not a script. An unreadable file stays as it is: execve will
// report the error.
static enum err resolve_scripts(struct preflight *out)
{
    strbuf_clear(&out->executable);
    strbuf_append_text(&out->executable, strbuf_text(&out->path));
    for (unsigned depth = 0; depth < SCRIPT_DEPTH_MAX; depth++) {
        char head[SCRIPT_LINE_BYTES] = {0};
        CLEANUP(fd_closep) int fd = open(strbuf_text(&out->executable), O_RDONLY | O_CLOEXEC);
        if (fd < 0 || read(fd, head, sizeof(head) - 1) <= 0 ||
            !script_interpreter(head, &out->executable)) {
            break;
        }
    }
    return strbuf_result(&out->executable);
}

// Symbols that identify the allocator in an executable.
static const struct {
    const char *symbol;
    const char *allocator;
} known_allocators[] = {
    {"mallctl", "jemalloc"},   {"je_mallctl", "jemalloc"},       {"_rjem_mallctl", "jemalloc"},
    {"mi_malloc", "mimalloc"}, {"tc_malloc", "tcmalloc"},        {"rallocx", "jemalloc"},
    {"mallocx", "jemalloc"},   {"scalable_malloc", "tbbmalloc"},
};

static void note_symbol(const char *name, struct elf_facts *facts)
{
    static const char beginnings[] = "_dijmrst"; // of all such names: most symbols have another
    if (strchr(beginnings, name[0]) == NULL || strncmp(name, "_Z", 2) == 0) {
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(known_allocators); i++) {
        if (strcmp(name, known_allocators[i].symbol) == 0) {
            facts->allocator = known_allocators[i].allocator;
        }
    }
    const char *sanitizer = allocator_name_sanitizer(name);
    if (sanitizer != NULL) {
        facts->allocator = sanitizer;
        facts->is_sanitized = true;
    }
}

// gcc exports no name of a sanitizer that it links statically, so local symbols count as well.
static void read_symbols(Elf *elf, uint32_t type, struct elf_facts *facts)
{
    struct symbol_table table;
    (void)symbol_table_open(&table, elf, type); // a missing one is empty
    for (size_t i = 0; i < table.count; i++) {
        GElf_Sym symbol;
        const char *name = gelf_getsym(table.data, (int)i, &symbol) != NULL
                               ? symbol_table_name(&table, &symbol)
                               : NULL;
        const bool is_dynamic = type == SHT_DYNSYM;
        if (name != NULL && symbol.st_shndx != SHN_UNDEF) {
            note_symbol(name, facts);
            facts->exports_malloc =
                facts->exports_malloc || (is_dynamic && strcmp(name, "malloc") == 0);
        } else if (name != NULL && is_dynamic && allocator_name_may_be_known(name)) {
            facts->imports_private =
                facts->imports_private || allocator_name_is_private(name, strcspn(name, "@"));
        }
    }
}

// Only what exports malloc can have a sanitizer whose symbols were stripped.
static void look_for_sanitizer(const struct elf_file *file, struct elf_facts *facts)
{
    const char *sanitizer =
        facts->exports_malloc && !facts->is_sanitized ? allocator_scan_sanitizer(file) : NULL;
    if (sanitizer != NULL) {
        facts->allocator = sanitizer;
        facts->is_sanitized = true;
    }
}

// Return the facts about a file. One that could not be opened but can be executed is tried.
static struct elf_facts elf_facts_of(const struct elf_file *file, const char *path)
{
    struct elf_facts facts = {0};
    if (file->elf == NULL) {
        return facts;
    }
    read_symbols(file->elf, SHT_DYNSYM, &facts);
    read_symbols(file->elf, SHT_SYMTAB, &facts);
    look_for_sanitizer(file, &facts);
    facts.runtime = runtime_table_of_module(file, path);
    return facts;
}

// Whether it is static and belongs to a runtime that calls no function which could be hooked.
static bool has_nothing_to_hook(enum exec_obstacle obstacle, const struct elf_facts *facts)
{
    return obstacle == EXEC_STATIC && facts->runtime != NULL && facts->runtime->lacks_malloc;
}

static bool is_among(const char *word, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(word, words[i]) == 0) {
            return true;
        }
    }
    return false;
}

// Return why a program that is started itself is refused; NULL: it is not.
static const char *sentence_of(enum exec_obstacle obstacle)
{
    static const char *const sentences[EXEC_OBSTACLE_COUNT] = {
        [EXEC_STATIC] =
            "is a static executable, which loads no libraries; link it dynamically to record it",
        [EXEC_BITS32] = "is a 32-bit program; only 64-bit programs can be recorded",
        [EXEC_MACHINE] = "is built for another kind of processor",
        [EXEC_LIBC] = "is linked with a libc other than glibc (such as musl), into which cairn's "
                      "library cannot be loaded; link it with glibc to record it",
        [EXEC_SANITIZER] = "is built with a sanitizer, which brings its own malloc; build it "
                           "without -fsanitize to record it",
        [EXEC_IDENTITY] = "changes its identity (setuid, setgid or capabilities), so the system "
                          "ignores LD_PRELOAD; run cairn as that user",
    };
    return sentences[obstacle];
}

// Whether the executable itself has functions that allocate, by its symbols or those of its
// separate debug file.
static enum err find_own_allocator(struct preflight *out, bool *out_has_own)
{
    const struct name_sources sources = {0};
    if (out->file.elf == NULL) {
        return ERR_OK;
    }
    TRY(allocator_scan(&out->file, strbuf_text(&out->executable), &sources, NULL, &out->scan));
    *out_has_own = *out_has_own || allocator_scan_has_allocator(&out->scan);
    return ERR_OK;
}

static void explain_own_malloc(const struct preflight_options *options,
                               const struct elf_facts *facts,
                               struct preflight *out)
{
    if (options->searches_libraries && !facts->is_sanitized) {
        strbuf_printf(&out->refusal, "cairn would have to trace '%s' for --all-allocators",
                      strbuf_text(&out->executable));
        return;
    }
    const char *allocator = facts->allocator != NULL ? facts->allocator
                            : facts->exports_malloc  ? "exported by the executable"
                                                     : "with names of its own";
    strbuf_printf(&out->refusal,
                  "'%s' has its own malloc built in (%s), which a preloaded library cannot see; %s"
                  "%s with --force",
                  strbuf_text(&out->executable), allocator,
                  facts->is_sanitized ? "build it without -fsanitize to record it; " : "",
                  options->follow_children ? "the programs that it starts can be recorded"
                                           : "the rest of its run can be recorded");
}

// Get the dynamic loader that an ELF file names. NULL: it names none, or nonsense. Valid while the
// file is open.
static const char *loader_of(Elf *elf)
{
    size_t count = 0;
    GElf_Phdr header;
    (void)elf_getphdrnum(elf, &count); // 0 without any
    for (size_t i = 0; i < count && gelf_getphdr(elf, (int)i, &header) != NULL; i++) {
        if (header.p_type == PT_INTERP && header.p_filesz > 0 && header.p_filesz <= PATH_MAX) {
            const Elf_Data *data = elf_getdata_rawchunk(elf, (int64_t)header.p_offset,
                                                        (size_t)header.p_filesz, ELF_T_BYTE);
            const char *name = data != NULL ? data->d_buf : NULL;
            return name != NULL && name[data->d_size - 1] == '\0' ? name : NULL;
        }
    }
    return NULL;
}

// Refuse a program whose loader is missing: execve would report it as if the program were.
static enum err check_loader(struct preflight *out, struct err_info *info)
{
    struct stat status;
    const char *loader = out->file.elf != NULL ? loader_of(out->file.elf) : NULL;
    if (loader == NULL || stat(loader, &status) == 0 || errno != ENOENT) {
        return ERR_OK;
    }
    (void)err_set(info, ERR_NOT_FOUND, "cannot run '%s': its dynamic loader '%s' does not exist",
                  strbuf_text(&out->executable), loader);
    return refuse(out, PREFLIGHT_STATUS_NOT_FOUND);
}

// `is_loaded`: the user names the loader, so the kernel does not look for one.
static enum err check_executable(const struct preflight_options *options,
                                 bool is_loaded,
                                 struct preflight *out,
                                 struct err_info *info)
{
    const char *path = strbuf_text(&out->executable);
    const enum exec_obstacle obstacle = exec_check(path);
    struct err_info unused = {0};
    (void)!elf_file_open(&out->file, path, &unused); // execve will report the error
    if (!is_loaded && obstacle != EXEC_MACHINE && obstacle != EXEC_BITS32) {
        TRY(check_loader(out, info));
    }
    const struct elf_facts facts = elf_facts_of(&out->file, path);
    const char *sentence = sentence_of(obstacle);
    bool has_own = false;
    out->is_static = obstacle == EXEC_STATIC;
    if (has_nothing_to_hook(obstacle, &facts)) {
        strbuf_printf(&out->refusal, "'%s' is a ", path);
        runtime_explain_static(facts.runtime, &out->refusal);
    } else if (sentence != NULL) {
        strbuf_printf(&out->refusal, "'%s' %s", path, sentence);
        out->wants_agent = obstacle == EXEC_LIBC || obstacle == EXEC_STATIC;
    } else if (!options->allow_own_malloc) {
        has_own = facts.imports_private || options->searches_libraries ||
                  (options->allocator_names != NULL && options->allocator_names->len > 0);
        TRY(find_own_allocator(out, &has_own));
        out->wants_agent = has_own && !facts.is_sanitized;
    }
    if (has_own) {
        explain_own_malloc(options, &facts, out);
    }
    TRY(strbuf_result(&out->refusal));
    if (out->refusal.len == 0 || (out->wants_agent && options->can_use_agent)) {
        return ERR_OK;
    }
    (void)err_set(info, ERR_UNSUPPORTED, "%s", strbuf_text(&out->refusal));
    return refuse(out, PREFLIGHT_STATUS_CANNOT_RECORD);
}

// Return the program among the arguments of the dynamic loader, or NULL if it runs none (ld.so(8);
// `ld.so --help`).
static const char *program_of_loader(char *const *argv)
{
    static const char *const with_value[] = {
        "--library-path",         "--inhibit-rpath",    "--audit", "--preload", "--argv0",
        "--glibc-hwcaps-prepend", "--glibc-hwcaps-mask"};
    static const char *const runs_none[] = {"--list",    "--verify",        "--help",
                                            "--version", "--list-tunables", "--list-diagnostics"};
    for (size_t i = 1; argv[i] != NULL; i++) {
        if (strncmp(argv[i], "--", 2) != 0) {
            return argv[i];
        }
        if (is_among(argv[i], runs_none, ARRAY_LEN(runs_none))) {
            return NULL;
        }
        i += is_among(argv[i], with_value, ARRAY_LEN(with_value)) && argv[i + 1] != NULL ? 1 : 0;
    }
    return NULL;
}

// Refuse a script whose interpreter is missing: execve would report it as if the script were.
static enum err check_interpreter(struct preflight *out, struct err_info *info)
{
    struct stat status;
    if (stat(strbuf_text(&out->executable), &status) == 0 || errno != ENOENT) {
        return ERR_OK;
    }
    (void)err_set(info, ERR_NOT_FOUND, "cannot run '%s': its interpreter '%s' does not exist",
                  strbuf_text(&out->path), strbuf_text(&out->executable));
    return refuse(out, PREFLIGHT_STATUS_NOT_FOUND);
}

enum err preflight_check(char *const *argv,
                         const struct preflight_options *options,
                         struct preflight *out,
                         struct err_info *info)
{
    *out = (struct preflight){.exit_status = PREFLIGHT_STATUS_CANNOT_RECORD};
    TRY(find_program(argv[0], out, info));
    TRY(resolve_scripts(out));
    TRY(check_interpreter(out, info));
    const bool is_loaded = exec_check_is_loader(strbuf_text(&out->executable));
    if (is_loaded) {
        const char *program = program_of_loader(argv);
        strbuf_clear(&out->executable);
        strbuf_append_text(&out->executable, program != NULL ? program : argv[0]);
        TRY(strbuf_result(&out->executable));
    }
    return check_executable(options, is_loaded, out, info);
}

const char *preflight_find_hidden(struct preflight *preflight)
{
    if (preflight->file.elf == NULL) {
        return NULL;
    }
    allocator_scan_read_texts(&preflight->scan, &preflight->file);
    if (preflight->scan.hidden != NULL) {
        allocator_scan_explain(&preflight->scan, &preflight->file,
                               strbuf_text(&preflight->executable), &preflight->hidden);
    }
    elf_file_close(&preflight->file);
    return preflight->hidden.len > 0 ? strbuf_text(&preflight->hidden) : NULL;
}

void preflight_release(struct preflight *preflight)
{
    elf_file_close(&preflight->file);
    allocator_scan_release(&preflight->scan);
    strbuf_release(&preflight->path);
    strbuf_release(&preflight->executable);
    strbuf_release(&preflight->refusal);
    strbuf_release(&preflight->hidden);
}
