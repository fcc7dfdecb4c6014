// SPDX-License-Identifier: MIT
// symbolize: the symbolizer as a program, so that tests can hold it against others of its kind.
//
//   symbolize [-b BUILD-ID] [-s EXECUTABLE-DIR] [-d DEBUG-DIR] [-n] [-q] FILE < ADDRESSES
//
// Reads exact hexadecimal addresses, one a line. Prints for each the address, then one line a
// frame: function, file, line and "inlined" or "", separated by tabs. Last line: "coverage", asked,
// functions, lines, inlined, gap, source, advice; with -q this line only, and microseconds
// and peak memory in KiB. -n asks debuginfod.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "symbols/elf/debuginfod.h"
#include "symbols/symbolizer.h"

DEFINE_VEC(query_vec, struct symbol_query);

struct arguments {
    struct symbolizer_options options;
    const char *executable_dir;
    const char *debug_dir;
    struct debuginfod servers;
    uint8_t build_id[64];
    size_t build_id_bytes;
    bool is_quiet;
    const char *file;
};

static void fail(const char *what, enum err reason)
{
    (void)fprintf(stderr, "symbolize: %s: %s\n", what, err_name(reason));
    exit(1);
}

static void parse_build_id(struct arguments *a, const char *hex)
{
    for (size_t i = 0; hex[i] != 0 && hex[i + 1] != 0 && a->build_id_bytes < 64; i += 2) {
        char pair[3] = {hex[i], hex[i + 1], 0};
        a->build_id[a->build_id_bytes++] = (uint8_t)strtoul(pair, NULL, 16);
    }
}

static void parse(struct arguments *a, int argc, char **argv)
{
    int option;
    while ((option = getopt(argc, argv, "b:s:d:nq")) != -1) {
        switch (option) {
        case 'b':
            parse_build_id(a, optarg);
            break;
        case 's':
            a->executable_dir = optarg;
            a->options.sources.executable_dirs = &a->executable_dir;
            a->options.sources.executable_dir_count = 1;
            break;
        case 'd':
            a->debug_dir = optarg;
            a->options.sources.debug_dirs = &a->debug_dir;
            a->options.sources.debug_dir_count = 1;
            break;
        case 'n':
            a->options.sources.servers = &a->servers;
            break;
        case 'q':
            a->is_quiet = true;
            break;
        default:
            fail("usage", ERR_INVALID);
        }
    }
    if (optind + 1 != argc) {
        fail("usage", ERR_INVALID);
    }
    a->file = argv[optind];
}

static void read_queries(struct query_vec *queries)
{
    char line[64];
    while (fgets(line, sizeof(line), stdin) != NULL) {
        struct symbol_query query = {.address = strtoull(line, NULL, 16), .is_exact = true};
        enum err result = query_vec_push(queries, query);
        if (result != ERR_OK) {
            fail("addresses", result);
        }
    }
}

static uint64_t now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); // cannot fail
    return (uint64_t)now.tv_sec * 1000000U + (uint64_t)now.tv_nsec / 1000U;
}

// Prints a text on one line and within its column; a damaged file's paths may hold anything.
static void print_field(const char *text)
{
    for (; *text != 0; text++) {
        (void)putchar((unsigned char)*text < 0x20 ? '?' : *text);
    }
    (void)putchar('\t');
}

static void print_chain(const struct string_table *strings,
                        uint64_t address,
                        const struct symbol_frame_vec *frames,
                        struct symbol_chain chain)
{
    (void)printf("%#" PRIx64 "\n", address);
    for (uint32_t i = chain.first; i < chain.first + chain.count; i++) {
        const struct symbol_frame *frame = &frames->items[i];
        print_field(string_table_get(strings, frame->function));
        print_field(string_table_get(strings, frame->file));
        (void)printf("%u\t%s\n", frame->line, frame->is_inlined ? "inlined" : "");
    }
}

static void
print_counts(const struct symbol_chain *chains, size_t count, const struct symbol_frame_vec *frames)
{
    size_t with_function = 0;
    size_t with_line = 0;
    size_t with_inlined = 0;
    for (size_t i = 0; i < count; i++) {
        if (chains[i].count > 0) {
            const struct symbol_frame *innermost = &frames->items[chains[i].first];
            with_function += innermost[chains[i].count - 1].function != 0;
            with_line += innermost->file != 0 && innermost->line != 0;
            with_inlined += innermost->is_inlined;
        }
    }
    (void)printf("coverage\t%zu\t%zu\t%zu\t%zu", count, with_function, with_line, with_inlined);
}

static void print_coverage(struct symbol_coverage c, const struct arguments *a, uint64_t spent_us)
{
    (void)printf("\t%d\t%s\t%s\n", (int)c.gap, c.source, c.advice);
    struct rusage usage;
    if (a->is_quiet && getrusage(RUSAGE_SELF, &usage) == 0) {
        (void)printf("%" PRIu64 "\t%ld\n", spent_us, usage.ru_maxrss);
    }
}

int main(int argc, char **argv)
{
    struct arguments a = {0};
    struct string_table strings = {0};
    struct query_vec queries = {0};
    struct symbol_frame_vec frames = {0};
    struct symbolizer *symbolizer = NULL;
    uint32_t module = 0;
    parse(&a, argc, argv);
    read_queries(&queries);
    a.options.strings = &strings;
    uint64_t begin_us = now_us();
    enum err result = symbolizer_new(&a.options, &symbolizer);
    if (result == ERR_OK) {
        struct bytes build_id = {.data = a.build_id, .len = a.build_id_bytes};
        result = symbolizer_add_module(symbolizer, a.file, build_id, &module);
    }
    struct symbol_chain *chains = calloc(queries.len + 1, sizeof(*chains));
    if (result == ERR_OK && chains != NULL) {
        result =
            symbolizer_resolve(symbolizer, module, queries.items, queries.len, chains, &frames);
    }
    if (result != ERR_OK || chains == NULL) {
        fail(a.file, result);
    }
    for (size_t i = 0; i < queries.len && !a.is_quiet; i++) {
        print_chain(&strings, queries.items[i].address, &frames, chains[i]);
    }
    const uint64_t spent_us = now_us() - begin_us;
    print_counts(chains, queries.len, &frames);
    print_coverage(symbolizer_coverage(symbolizer, module), &a, spent_us);
    free(chains);
    symbol_frame_vec_release(&frames);
    query_vec_release(&queries);
    symbolizer_free(symbolizer);
    debuginfod_release(&a.servers);
    string_table_release(&strings);
    return 0;
}
