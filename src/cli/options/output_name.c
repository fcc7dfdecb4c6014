// SPDX-License-Identifier: MIT
// output_name: makes default names and expands patterns. See output_name.h.
#include "cli/options/output_name.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/text/screen_text.h"
#include "host/os/file.h"
#include "host/text/utf8.h"
#include "host/text/visible_text.h"

enum {
    PROGRAM_MAX_BYTES = 128
}; // leaves room below NAME_MAX for the rest of the name

// Return the length of the character at `text` if it is kept, else 0.
static size_t len_of_kept(const char *text)
{
    uint32_t code;
    if ((unsigned char)text[0] < 0x80) {
        return isalnum((unsigned char)text[0]) || strchr("._+-", text[0]) != NULL;
    }
    const size_t len = utf8_decode(text, &code);
    return len > 0 && !visible_is_hidden(code) ? len : 0;
}

void output_name_append_default(struct strbuf *out, const char *program, bool has_pid)
{
    const char *name = path_file_name(program);
    strbuf_append_text(out, "cairn.");
    for (size_t at = 0, len; name[at] != '\0'; at += len) {
        len = len_of_kept(name + at);
        const bool is_kept = len > 0;
        len = is_kept ? len : 1;
        if (at + len > PROGRAM_MAX_BYTES) {
            break;
        }
        strbuf_append(out, is_kept ? name + at : "_", len);
    }
    strbuf_append_text(out, has_pid ? ".%p.cairn" : ".cairn");
}

void output_name_append_pattern(struct strbuf *out, const char *pattern, const char *program)
{
    if (pattern != NULL) {
        strbuf_append_text(out, pattern);
    } else {
        output_name_append_default(out, program, true);
    }
}

void output_name_append_path(struct strbuf *out, const char *path)
{
    for (; *path != '\0'; path++) {
        strbuf_append_text(out, *path == '%' ? "%" : "");
        strbuf_append_char(out, *path);
    }
}

enum err
output_name_expand(const char *pattern, uint32_t pid, struct strbuf *out, struct err_info *info)
{
    char host[HOST_NAME_MAX + 1] = "";
    if (gethostname(host, sizeof(host) - 1) != 0) {
        return err_set_errno(info, errno, "cannot get the name of this host");
    }
    for (const char *at = pattern; *at != '\0'; at++) {
        if (*at != '%') {
            strbuf_append_char(out, *at);
            continue;
        }
        at++;
        switch (*at) {
        case 'p':
            strbuf_printf(out, "%" PRIu32, pid);
            break;
        case 'h':
            strbuf_append_text(out, host);
            break;
        case '%':
            strbuf_append_char(out, '%');
            break;
        default:
            return err_set(info, ERR_INVALID,
                           "--output: in '%.200s', %% must be followed by p, h or %%", pattern);
        }
    }
    return strbuf_result(out);
}

bool output_name_is_recording(const char *path)
{
    struct stat status;
    const char *name = path_file_name(path);
    const bool has_name = screen_ends_with(name, ".cairn") || strncmp(name, "heaptrack.", 10) == 0;
    return has_name &&
           (stat(path, &status) != 0 || (S_ISREG(status.st_mode) && access(path, X_OK) != 0));
}
