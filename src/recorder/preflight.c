// SPDX-License-Identifier: MIT
// preflight: see preflight.h.
#include "recorder/preflight.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "host/file.h"

#define SCRIPT_DEPTH_MAX  4u   // as fs/exec.c: BINPRM_MAX_RECURSION
#define SCRIPT_LINE_BYTES 256u // as the kernel's BINPRM_BUF_SIZE

// What libc's execvp searches when PATH is not set: confstr(_CS_PATH).
#define DEFAULT_PATH "/bin:/usr/bin"

// What an ELF file says of itself, as far as it decides whether we can record it.
struct elf_facts {
    bool is_elf;
    bool is_foreign; // another word size or machine than ours
    bool is_32bit;
    bool has_interpreter;
    bool is_go; // has the note that Go's linker leaves in every program
    bool exports_malloc;
    const char *allocator; // name of the allocator whose own symbols it exports, or NULL
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

// Looks through PATH as execvp(3) does. True: `found` is what to execute. A file that is there but
// may not be executed is remembered in `denied`.
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

static enum err find_program(const char *program, struct preflight *out, struct err_info *info)
{
    bool denied = false;
    if (program[0] == '\0') {
        (void)err_set(info, ERR_NOT_FOUND, "no program is named by an empty argument");
        return refuse(out, PREFLIGHT_STATUS_NOT_FOUND);
    }
    if (strchr(program, '/') == NULL) {
        if (search_path(program, &out->path, &denied)) {
            return strbuf_result(&out->path);
        }
        if (!denied) {
            (void)err_set(info, ERR_NOT_FOUND, "'%s' is not in PATH", program);
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

// The interpreter that a script names, in `out`. False if `head` is not the head of a script.
static bool script_interpreter(const char *head, struct strbuf *out)
{
    if (head[0] != '#' || head[1] != '!') {
        return false;
    }
    const char *start = head + 2 + strspn(head + 2, " \t");
    strbuf_clear(out);
    strbuf_append(out, start, strcspn(start, " \t\n"));
    return out->len > 0;
}

// Follows #! lines until something that is no script. What cannot be read stays as it is: execve
// will say what is wrong with it.
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

// Symbols that give away which allocator an executable has linked in.
static const struct {
    const char *symbol;
    const char *allocator;
} known_allocators[] = {
    {"mallctl", "jemalloc"},
    {"je_mallctl", "jemalloc"},
    {"_rjem_mallctl", "jemalloc"},
    {"mi_malloc", "mimalloc"},
    {"tc_malloc", "tcmalloc"},
    {"rallocx", "jemalloc"},
    {"mallocx", "jemalloc"},
    {"scalable_malloc", "tbbmalloc"},
    {"__asan_init", "AddressSanitizer"},
};

static void note_symbol(const char *name, struct elf_facts *facts)
{
    if (strcmp(name, "malloc") == 0) {
        facts->exports_malloc = true;
    }
    for (size_t i = 0; i < ARRAY_LEN(known_allocators); i++) {
        if (strcmp(name, known_allocators[i].symbol) == 0) {
            facts->allocator = known_allocators[i].allocator;
        }
    }
}

static void read_dynamic_symbols(Elf *elf, Elf_Scn *section, struct elf_facts *facts)
{
    GElf_Shdr header;
    Elf_Data *data = elf_getdata(section, NULL);
    if (data == NULL || gelf_getshdr(section, &header) == NULL || header.sh_entsize == 0) {
        return;
    }
    const size_t count = data->d_size / header.sh_entsize;
    for (size_t i = 0; i < count && i <= INT32_MAX; i++) {
        GElf_Sym symbol;
        if (gelf_getsym(data, (int)i, &symbol) == NULL || symbol.st_shndx == SHN_UNDEF) {
            continue;
        }
        const char *name = elf_strptr(elf, header.sh_link, symbol.st_name);
        if (name != NULL) {
            note_symbol(name, facts);
        }
    }
}

static bool has_interpreter(Elf *elf)
{
    size_t count = 0;
    if (elf_getphdrnum(elf, &count) != 0) {
        return false;
    }
    for (size_t i = 0; i < count && i <= UINT16_MAX; i++) {
        GElf_Phdr header;
        if (gelf_getphdr(elf, (int)i, &header) != NULL && header.p_type == PT_INTERP) {
            return true;
        }
    }
    return false;
}

static void read_elf(Elf *elf, struct elf_facts *facts)
{
    GElf_Ehdr header;
    if (elf_kind(elf) != ELF_K_ELF || gelf_getehdr(elf, &header) == NULL) {
        return;
    }
#ifdef __x86_64__
    const unsigned our_machine = EM_X86_64;
#else
    const unsigned our_machine = EM_AARCH64;
#endif
    facts->is_elf = true;
    facts->is_32bit = header.e_ident[EI_CLASS] == ELFCLASS32;
    facts->is_foreign = facts->is_32bit || header.e_machine != our_machine;
    facts->has_interpreter = has_interpreter(elf);
    size_t names = 0;
    if (elf_getshdrstrndx(elf, &names) != 0) {
        return; // it has no sections
    }
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section)) != NULL;) {
        GElf_Shdr section_header;
        if (gelf_getshdr(section, &section_header) == NULL) {
            continue;
        }
        if (section_header.sh_type == SHT_DYNSYM) {
            read_dynamic_symbols(elf, section, facts);
        }
        const char *name = elf_strptr(elf, names, section_header.sh_name);
        facts->is_go = facts->is_go || (name != NULL && strcmp(name, ".note.go.buildid") == 0);
    }
}

static struct elf_facts elf_facts_of(const char *path)
{
    struct elf_facts facts = {0};
    CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || elf_version(EV_CURRENT) == EV_NONE) {
        return facts; // unreadable but executable: cannot be told, so it is tried
    }
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    if (elf != NULL) {
        read_elf(elf, &facts);
        (void)elf_end(elf); // returns a reference count
    }
    return facts;
}

// ld.so(8), secure-execution mode: LD_PRELOAD is ignored when execve changes the identity.
static bool changes_identity(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0) {
        return false;
    }
    const bool other_user = (status.st_mode & S_ISUID) != 0 && status.st_uid != getuid();
    const bool other_group = (status.st_mode & S_ISGID) != 0 && status.st_gid != getgid();
    const bool capabilities = getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0;
    return other_user || other_group || capabilities;
}

static enum err refuse_own_malloc(const struct preflight_options *options,
                                  const struct elf_facts *facts,
                                  struct preflight *out,
                                  struct err_info *info)
{
    (void)err_set(info, ERR_UNSUPPORTED,
                  "'%s' has its own malloc built in (%s), which a preloaded library cannot see; "
                  "%s with --force",
                  strbuf_text(&out->executable),
                  facts->allocator != NULL ? facts->allocator : "exported by the executable",
                  options->follow_children ? "the programs that it starts can be recorded"
                                           : "the rest of its run can be recorded");
    return refuse(out, PREFLIGHT_STATUS_CANNOT_RECORD);
}

static enum err check_executable(const struct preflight_options *options,
                                 struct preflight *out,
                                 struct err_info *info)
{
    const char *path = strbuf_text(&out->executable);
    const struct elf_facts facts = elf_facts_of(path);
    const char *reason = NULL;
    if (facts.is_32bit) {
        reason = "is a 32-bit program; only 64-bit programs can be recorded";
    } else if (facts.is_foreign) {
        reason = "is built for another kind of processor";
    } else if (facts.is_elf && !facts.has_interpreter && facts.is_go) {
        reason = "is a program of Go, whose heap is its run-time's own and not malloc's; write a "
                 "heap profile with runtime/pprof, which 'cairn report' opens";
    } else if (facts.is_elf && !facts.has_interpreter) {
        reason = "is a static executable: it loads no libraries, so nothing can be put between it "
                 "and its malloc; link it dynamically to record it";
    } else if (changes_identity(path)) {
        reason = "runs with another identity than yours (setuid, setgid or capabilities), for "
                 "which the system ignores LD_PRELOAD; run cairn as that user";
    }
    if (reason != NULL) {
        (void)err_set(info, ERR_UNSUPPORTED, "'%s' %s", path, reason);
        return refuse(out, PREFLIGHT_STATUS_CANNOT_RECORD);
    }
    out->exports_malloc = facts.exports_malloc;
    if (facts.exports_malloc && !options->allow_own_malloc) {
        return refuse_own_malloc(options, &facts, out, info);
    }
    return ERR_OK;
}

enum err preflight_check(const char *program,
                         const struct preflight_options *options,
                         struct preflight *out,
                         struct err_info *info)
{
    *out = (struct preflight){.exit_status = PREFLIGHT_STATUS_CANNOT_RECORD};
    TRY(find_program(program, out, info));
    TRY(resolve_scripts(out));
    return check_executable(options, out, info);
}

void preflight_release(struct preflight *preflight)
{
    strbuf_release(&preflight->path);
    strbuf_release(&preflight->executable);
}
