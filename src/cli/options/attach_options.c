// SPDX-License-Identifier: MIT
#include "cli/options/attach_options.h"

#include "host/os/process_search.h"
#include "host/text/number.h"

void attach_targets_release(struct attach_targets *targets)
{
    u32_vec_release(&targets->pids);
}

static enum err parse_pids(const char *text, struct u32_vec *out, struct err_info *info)
{
    for (const char *at = text;; at++) {
        uint64_t pid = 0;
        const bool is_number = number_take(&at, 10, &pid) && pid > 0 && pid <= INT32_MAX;
        if (!is_number || (*at != ',' && *at != '\0')) {
            return err_set(info, ERR_INVALID,
                           "--pid: '%.40s' is not a whole number of at least 1, or a list of such "
                           "numbers like 17,18",
                           text);
        }
        TRY(u32_vec_push(out, (uint32_t)pid));
        if (*at == '\0') {
            return ERR_OK;
        }
    }
}

static enum err find_named(const char *name, struct attach_targets *out, struct err_info *info)
{
    const size_t before = out->pids.len;
    if (*name == '\0') {
        return err_set(info, ERR_INVALID, "--name: the name is empty");
    }
    TRY(process_search(name, &out->pids, info));
    out->is_by_name = true;
    return out->pids.len > before
               ? ERR_OK
               : err_set(info, ERR_NOT_FOUND,
                         "no process has the name '%.80s', neither as its command name nor as the "
                         "file name of its executable",
                         name);
}

enum err attach_targets_find(const struct option_word_vec *words,
                             struct attach_targets *out,
                             struct err_info *info)
{
    for (size_t i = 0; i < words->len; i++) {
        const struct option_word *word = words->items + i;
        TRY(word->spec->letter == 'p' ? parse_pids(word->text, &out->pids, info)
                                      : find_named(word->text, out, info));
    }
    u32_vec_sort_once(&out->pids);
    return out->pids.len <= ATTACH_TARGETS_MAX
               ? ERR_OK
               : err_set(info, ERR_LIMIT, "%zu processes are too many, the limit is %d",
                         out->pids.len, ATTACH_TARGETS_MAX);
}
