// SPDX-License-Identifier: MIT
// Walks whole stacks under everything that programs do to them; see stack_tree.h and stack_probe.h
// for the source of truth. With CAIRN_NIGHTLY=1 there are twice as many walks, with
// CAIRN_TEST_LONG=1 millions.
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/test_support/by_night.h"
#include "machine_arch.h"
#include "stack_oracle.h"
#include "stack_probe.h"
#include "stack_tree.h"
#include "stack_variants.h"
#include "target/unwind/walk/step.h"

#define NODES_MAX       256u
#define C_NODES         10u
#define CXX_NODES       2u
#define DEPTH           24u
#define TREE_PROBES     500u
#define COROUTINE_BYTES ((size_t)1 << 20)
#define ALTSTACK_BYTES  ((size_t)1 << 20)

#define X(name) extern const tree_node name[];
STACK_VARIANTS_C(X)
STACK_VARIANTS_CXX(X)
#undef X

static struct {
    tree_node nodes[NODES_MAX]; // the nodes in C come first
    size_t c_count;
    size_t count;
} g_all;

static void add_nodes(const tree_node *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        g_all.nodes[g_all.count++] = nodes[i];
    }
}

static bool is_emulated(void)
{
    return getenv("CAIRN_TEST_SHORT") != NULL;
}

static unsigned trees(unsigned ordinary)
{
    if (is_emulated()) { // 20 times as slow
        return (ordinary + 9) / 10;
    }
    return getenv("CAIRN_TEST_LONG") != NULL ? ordinary * 20 : ordinary / step_by_day(8);
}

static struct stack_tree *new_tree(uint64_t seed, struct stack_probe *probe)
{
    struct stack_tree *tree = malloc(sizeof(*tree));
    assert_non_null(tree);
    *tree = (struct stack_tree){.random = seed * 0x9e3779b97f4a7c15ULL | 1,
                                .probes_left = TREE_PROBES,
                                .probe = stack_probe_run,
                                .context = probe,
                                .nodes = g_all.nodes,
                                .node_count = g_all.count};
    return tree;
}

static NOINLINE void run_tree(struct stack_tree *tree, unsigned probes)
{
    tree->probes_left = probes;
    while (tree->probes_left > 0) {
        tree->shadow_depth = 0;
        (void)tree_pick(tree)(tree, DEPTH);
    }
}

static void report(const char *what, const struct stack_probe *p)
{
    print_message("%s: %llu walks of %.1f frames, %.1f of them changed; %llu remembered, %llu "
                  "named without one, %llu "
                  "foreign, %llu cut, %llu by frame pointer, %llu unfinished; %llu against "
                  "%s, %llu against the precise walk\n",
                  what, (unsigned long long)p->walks, (double)p->frames / (double)p->walks,
                  (double)p->frames_changed / (double)p->walks, (unsigned long long)p->walk_cache,
                  (unsigned long long)p->again, (unsigned long long)p->foreign,
                  (unsigned long long)p->cut, (unsigned long long)p->guessed,
                  (unsigned long long)p->unfinished, (unsigned long long)p->against_oracle,
                  stack_oracle_name, (unsigned long long)p->against_precise);
    if (p->failure[0] != 0) {
        fail_msg("%s: %s", what, p->failure);
    }
    assert_true(p->walks > 0);
}

static void calls_throws_and_jumps(void **state)
{
    (void)state;
    struct stack_probe probe;
    stack_probe_init(&probe, 1024, 512);
    for (unsigned i = 0; i < trees(200) && probe.failure[0] == 0; i++) {
        struct stack_tree *tree = new_tree(i + 1, &probe);
        run_tree(tree, TREE_PROBES);
        free(tree);
    }
    report("calls", &probe);
    assert_true(probe.unfinished == 0);
    assert_true(probe.guessed == 0);
    assert_true(probe.foreign == 0);
    assert_true(probe.walk_cache == probe.walks);
    assert_true(probe.again > probe.walks / 100);
    stack_probe_release(&probe);
}

static void small_memories_and_cut_stacks(void **state)
{
    (void)state;
    static const struct {
        uint32_t capacity;
        uint32_t max_frames;
    } cases[] = {{8, 8}, {16, 8}, {32, 16}, {40, 32}, {64, 24}, {1024, 16}, {1024, 31}};
    for (size_t c = 0; c < ARRAY_LEN(cases); c++) {
        struct stack_probe probe;
        stack_probe_init(&probe, cases[c].capacity, cases[c].max_frames);
        for (unsigned i = 0; i < trees(10) && probe.failure[0] == 0; i++) {
            struct stack_tree *tree = new_tree(1000 + i, &probe);
            run_tree(tree, TREE_PROBES);
            free(tree);
        }
        report("cut", &probe);
        assert_true(probe.cut > 0);
        assert_true(probe.unfinished == 0);
        stack_probe_release(&probe);
    }
}

// --- Threads. ---

struct worker {
    pthread_t thread;
    uint64_t seed;
    struct stack_probe probe;
};

static void *work(void *context)
{
    struct worker *worker = context;
    stack_probe_init(&worker->probe, 256, 128);
    for (unsigned i = 0; i < trees(20) && worker->probe.failure[0] == 0; i++) {
        struct stack_tree *tree = new_tree(worker->seed + i, &worker->probe);
        run_tree(tree, TREE_PROBES);
        free(tree);
    }
    return NULL;
}

static void threads_share_the_rules(void **state)
{
    (void)state;
    struct worker workers[4] = {0};
    for (size_t i = 0; i < ARRAY_LEN(workers); i++) {
        workers[i].seed = 5000 + 1000 * i;
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(workers); i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        report("thread", &workers[i].probe);
        assert_true(workers[i].probe.unfinished == 0);
        assert_true(workers[i].probe.walk_cache == workers[i].probe.walks);
        stack_probe_release(&workers[i].probe);
    }
}

static void *fork_and_work(void *context)
{
    struct worker *worker = context;
    (void)work(worker);
    pid_t child = fork();
    if (child == 0) {
        // The child's only thread runs on its parent's thread's stack.
        struct stack_tree *tree = new_tree(77, &worker->probe);
        uint64_t before = worker->probe.walk_cache;
        run_tree(tree, TREE_PROBES);
        bool good =
            worker->probe.failure[0] == 0 && worker->probe.walk_cache == before + TREE_PROBES;
        struct stack_probe fresh;
        stack_probe_init(&fresh, 256, 128);
        tree->context = &fresh;
        run_tree(tree, TREE_PROBES);
        good = good && fresh.failure[0] == 0 && fresh.walk_cache == TREE_PROBES;
        _exit(good ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    worker->seed = (uint64_t)(unsigned)status;
    return NULL;
}

static void a_forked_child_goes_on_where_its_thread_was(void **state)
{
    (void)state;
    struct worker worker = {.seed = 9000};
    assert_int_equal(pthread_create(&worker.thread, NULL, fork_and_work, &worker), 0);
    assert_int_equal(pthread_join(worker.thread, NULL), 0);
    report("before fork", &worker.probe);
    assert_int_equal(worker.seed, 0);
    stack_probe_release(&worker.probe);
}

// --- Coroutines. ---

static struct {
    ucontext_t main;
    ucontext_t coroutine;
    struct stack_tree *tree; // the coroutine's; NULL when it has ended
    struct stack_probe *probe;
    uint64_t seed;
    void *stack;
    unsigned count;
} g_coroutine;

static void leave_coroutine(struct stack_tree *tree)
{
    (void)tree;
    (void)swapcontext(&g_coroutine.coroutine, &g_coroutine.main);
}

static void coroutine_body(void)
{
    run_tree(g_coroutine.tree, 100);
    free(g_coroutine.tree);
    g_coroutine.tree = NULL;
}

// Start a coroutine, on a new stack at the place of the old one, or continue the existing one.
static void enter_coroutine(struct stack_tree *tree)
{
    (void)tree;
    if (g_coroutine.tree == NULL) {
        (void)munmap(g_coroutine.stack, COROUTINE_BYTES);
        g_coroutine.stack = mmap(g_coroutine.stack, COROUTINE_BYTES, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        g_coroutine.tree = new_tree(g_coroutine.seed++, g_coroutine.probe);
        g_coroutine.tree->pause = leave_coroutine;
        (void)getcontext(&g_coroutine.coroutine);
        g_coroutine.coroutine.uc_stack =
            (stack_t){.ss_sp = g_coroutine.stack, .ss_size = COROUTINE_BYTES};
        g_coroutine.coroutine.uc_link = &g_coroutine.main;
        makecontext(&g_coroutine.coroutine, coroutine_body, 0);
        g_coroutine.probe->entry_pc = machine_entry_pc(&g_coroutine.coroutine);
        g_coroutine.count++;
    }
    (void)swapcontext(&g_coroutine.main, &g_coroutine.coroutine);
}

static void coroutines_come_and_go(void **state)
{
    (void)state;
    struct stack_probe probe;
    stack_probe_init(&probe, 1024, 512);
    g_coroutine.probe = &probe;
    g_coroutine.seed = 20000;
    for (unsigned i = 0; i < trees(40) && probe.failure[0] == 0; i++) {
        struct stack_tree *tree = new_tree(30000 + i, &probe);
        tree->pause = enter_coroutine;
        run_tree(tree, TREE_PROBES);
        free(tree);
    }
    report("coroutines", &probe);
    assert_true(g_coroutine.count > 1); // the second at the place of the first
    assert_true(probe.foreign > probe.walks / 10);
    assert_true(probe.walk_cache > probe.walks / 10);
    assert_true(probe.unfinished == 0);
    stack_probe_release(&probe);
}

// --- Signals. ---

static struct {
    struct stack_tree *tree; // the handler's tree
    struct stack_tree *interrupted;
    unsigned probes;
    volatile sig_atomic_t is_armed; // the timer of interruptions_at_any_instruction
} g_signal;

static void handle(int number)
{
    (void)number;
    int saved_errno = errno;
    struct stack_tree *tree = g_signal.tree;
    if (tree != NULL) {
        g_signal.tree = NULL; // a handler in a handler does nothing
        run_tree(tree, g_signal.probes);
        g_signal.tree = tree;
    }
    g_signal.is_armed = 0;
    errno = saved_errno;
}

static void raise_signal(struct stack_tree *tree)
{
    (void)tree;
    (void)raise(SIGUSR1);
}

static void set_handler(int number, int flags, stack_t *altstack)
{
    struct sigaction action = {.sa_handler = handle, .sa_flags = flags | SA_RESTART};
    assert_int_equal(sigaltstack(altstack, NULL), 0);
    assert_int_equal(sigaction(number, &action, NULL), 0);
}

// Do set_handler, but handlers return by code of the test's own, which no table describes.
static void set_handler_with_own_return(int number, int flags, void *restorer)
{
    const struct {
        void (*handler)(int);
        uint64_t flags;
        void *restorer;
        uint64_t mask;
    } action = {.handler = handle,
                .flags = (unsigned)flags | SA_RESTART | MACHINE_SA_RESTORER,
                .restorer = restorer};
    assert_int_equal(syscall(SYS_rt_sigaction, number, &action, NULL, sizeof(action.mask)), 0);
}

static stack_t new_altstack(void)
{
    void *memory =
        mmap(NULL, ALTSTACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    return (stack_t){.ss_sp = memory, .ss_size = ALTSTACK_BYTES};
}

static void drop_altstack(stack_t altstack)
{
    stack_t disabled = {.ss_flags = SS_DISABLE};
    assert_int_equal(sigaltstack(&disabled, NULL), 0);
    assert_int_equal(munmap(altstack.ss_sp, altstack.ss_size), 0);
}

// With `own_return`, handlers return by the code there.
static void run_with_raised_signals(int flags, bool is_foreign, void *own_return)
{
    struct stack_probe probe;
    struct stack_probe in_handler;
    stack_probe_init(&probe, 1024, 512);
    stack_probe_init(&in_handler, 1024, 512);
    stack_t altstack = new_altstack();
    set_handler(SIGUSR1, flags, &altstack);
    in_handler.restorer_pc = machine_restorer(SIGUSR1);
    if (own_return != NULL) {
        set_handler_with_own_return(SIGUSR1, flags, own_return);
        in_handler.oracle_is_blind = !stack_oracle_knows_sigreturn;
    }
    g_signal.tree = new_tree(40000, &in_handler);
    g_signal.probes = 4;
    for (unsigned i = 0; i < trees(20) && probe.failure[0] == 0; i++) {
        struct stack_tree *tree = new_tree(50000 + i, &probe);
        tree->pause = raise_signal;
        run_tree(tree, TREE_PROBES);
        free(tree);
    }
    report("interrupted", &probe);
    report(is_foreign ? "on the alternate stack" : "in a handler", &in_handler);
    assert_true(in_handler.foreign == (is_foreign ? in_handler.walks : 0));
    assert_true(in_handler.unfinished == 0);
    free(g_signal.tree);
    g_signal.tree = NULL;
    drop_altstack(altstack);
    stack_probe_release(&in_handler);
    stack_probe_release(&probe);
}

static void handlers_walk_through_the_signal_frame(void **state)
{
    (void)state;
    run_with_raised_signals(0, false, NULL);
}

static void handlers_on_an_alternate_stack_do_too(void **state)
{
    (void)state;
    run_with_raised_signals(SA_ONSTACK, true, NULL);
}

static void *new_code(const void *instructions, size_t len_bytes)
{
    void *code =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(code != MAP_FAILED);
    memcpy(code, instructions, len_bytes);
    __builtin___clear_cache(code, (char *)code + len_bytes);
    return code;
}

static void handlers_that_return_by_code_without_tables(void **state)
{
    (void)state;
    void *code = new_code(machine_sigreturn_code, sizeof(machine_sigreturn_code));
    run_with_raised_signals(0, false, code);
    run_with_raised_signals(SA_ONSTACK, true, code);
    assert_int_equal(munmap(code, 4096), 0);
}

// The program makes at least one probe between two interruptions, however slow it is.
static void arm_and_probe(struct stack_tree *tree)
{
    if (!g_signal.is_armed) {
        g_signal.is_armed = 1;
        const long delay_us = 1 + (long)(tree_random(tree) >> 8) % (is_emulated() ? 4000 : 200);
        const struct itimerval once = {.it_value = {.tv_usec = delay_us}};
        (void)setitimer(ITIMER_REAL, &once, NULL); // cannot fail with these arguments
    }
    stack_probe_run(tree);
}

// A timer interrupts the program, and its walks, at arbitrary instructions: prologues, epilogues,
// the PLT.
static void interruptions_at_any_instruction(void **state)
{
    (void)state;
    struct stack_probe probe;
    struct stack_probe in_handler;
    stack_probe_init(&probe, 1024, 512);
    stack_probe_init(&in_handler, 1024, 512);
    in_handler.has_async_nodes = true;
    stack_t altstack = new_altstack();
    set_handler(SIGALRM, 0, &altstack);
    in_handler.restorer_pc = machine_restorer(SIGALRM);
    const struct unwind_regs start = unwind_caller_regs();
    struct unwind_walk walk;
    unwind_thread_walk(probe.thread, &start, &walk);
    in_handler.root_pc = walk.frames[0].pc;
    stack_probe_release(&probe);
    stack_probe_init(&probe, 1024, 512);
    g_signal.tree = new_tree(60000, &in_handler);
    g_signal.tree->node_count = g_all.c_count; // throwing allocates, maybe inside malloc
    g_signal.probes = 1;
    const struct itimerval never = {0};
    for (unsigned i = 0; in_handler.walks < trees(2000) && in_handler.failure[0] == 0; i++) {
        struct stack_tree *tree = new_tree(70000 + i, &probe);
        tree->probe = arm_and_probe;
        run_tree(tree, TREE_PROBES);
        free(tree);
    }
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    report("interrupted by a timer", &probe);
    report("in the timer's handler", &in_handler);
    assert_true(in_handler.nonsense <= in_handler.walks / 20);
    assert_true(in_handler.oracle_gave_up <= in_handler.against_oracle);
    free(g_signal.tree);
    g_signal.tree = NULL;
    drop_altstack(altstack);
    stack_probe_release(&in_handler);
    stack_probe_release(&probe);
}

// --- Code without tables. ---

static void *g_generated;

static NOINLINE uint64_t call_generated(struct stack_tree *tree, unsigned depth)
{
    TREE_ENTER(tree);
    uint64_t (*code)(struct stack_tree *, unsigned, tree_node) =
        (uint64_t(*)(struct stack_tree *, unsigned, tree_node))g_generated;
    // The C++ runtime does not know this code: a throw could not pass through it.
    unsigned catchers = tree->catchers;
    tree->catchers = 0;
    uint64_t sum = code(tree, depth, tree_pick(tree)) + 1;
    tree->catchers = catchers;
    TREE_LEAVE(tree);
    return sum;
}

static void generated_code_is_followed_by_frame_pointer(void **state)
{
    (void)state;
    g_generated = new_code(machine_generated_code, sizeof(machine_generated_code));
    size_t count = g_all.count;
    for (unsigned i = 0; i < 10; i++) {
        add_nodes((const tree_node[]){call_generated}, 1);
    }
    struct stack_probe probe;
    stack_probe_init(&probe, 1024, 512);
    for (unsigned i = 0; i < trees(40) && probe.failure[0] == 0; i++) {
        struct stack_tree *tree = new_tree(80000 + i, &probe);
        run_tree(tree, TREE_PROBES);
        free(tree);
    }
    g_all.count = count;
    report("generated", &probe);
    assert_true(probe.guessed > probe.walks / 20);
    assert_true(probe.unfinished == 0);
    assert_int_equal(munmap(g_generated, 4096), 0);
    stack_probe_release(&probe);
}

// --- Code that comes and goes. ---

static void modules_take_each_others_place(void **state)
{
    (void)state;
    static const char *const paths[] = {STACK_MODULE_A, STACK_MODULE_B};
    struct stack_probe probe;
    stack_probe_init(&probe, 1024, 512);
    uint64_t places[2] = {0};
    for (unsigned i = 0; i < trees(20) && probe.failure[0] == 0; i++) {
        void *module = dlopen(paths[i % 2], RTLD_NOW);
        assert_non_null(module);
        unwind_modules_refresh();
        const tree_node *nodes = dlsym(module, "nodes");
        assert_non_null(nodes);
        places[i % 2] = (uint64_t)nodes >> 16;
        struct stack_tree *tree = new_tree(90000 + i, &probe);
        tree->nodes = nodes;
        tree->node_count = C_NODES;
        run_tree(tree, TREE_PROBES);
        free(tree);
        assert_int_equal(dlclose(module), 0);
        unwind_flush();
    }
    report("modules", &probe);
    assert_true(probe.unfinished == 0);
    assert_true(probe.guessed == 0);
    // Else the test would be void. An emulator chooses addresses in its own way.
    assert_true(places[0] == places[1] || is_emulated());
    stack_probe_release(&probe);
}

// --- Depth. ---

static NOINLINE uint64_t recurse(struct stack_tree *tree, unsigned depth)
{
    TREE_ENTER(tree);
    uint64_t sum = 1;
    if (depth % 16 == 0) {
        tree->probe(tree);
    }
    if (depth > 0) {
        sum += recurse(tree, depth - 1);
    }
    if (depth % 64 == 0) {
        tree->probe(tree);
    }
    TREE_LEAVE(tree);
    return sum;
}

static void recursion_10000_deep(void **state)
{
    (void)state;
    static const uint32_t capacities[] = {512, 1024, 4096, 20000};
    for (size_t i = 0; i < ARRAY_LEN(capacities); i++) {
        struct stack_probe probe;
        stack_probe_init(&probe, capacities[i], 512);
        struct stack_tree *tree = new_tree(1, &probe);
        tree->probes_left = UINT32_MAX;
        (void)recurse(tree, 10000);
        free(tree);
        report("recursion", &probe);
        assert_true(probe.unfinished == 0);
        assert_true(probe.cut > 500);
        assert_true(probe.walks - probe.walk_cache <= probe.walks * (capacities[i] < 10000));
        stack_probe_release(&probe);
    }
}

static void errno_is_kept(void **state)
{
    (void)state;
    struct stack_probe probe;
    stack_probe_init(&probe, 64, 64);
    const struct unwind_regs start = unwind_caller_regs();
    struct unwind_walk walk;
    errno = 4321;
    unwind_thread_walk(probe.thread, &start, &walk);
    const struct unwind_regs nonsense[] = {{.pc = 1, .sp = 8, .fp = 8},
                                           {.pc = start.pc, .sp = 8, .fp = 8},
                                           {.pc = start.pc, .sp = UINT64_MAX - 7, .fp = 0},
                                           {.pc = 0, .sp = start.sp, .fp = start.fp},
                                           {.pc = CODE_ADDR_MAX, .sp = start.sp, .fp = start.fp},
                                           {.pc = UINT64_MAX, .sp = start.sp, .fp = start.fp},
                                           {.pc = 12345, .sp = start.sp, .fp = UINT64_MAX - 15}};
    for (size_t i = 0; i < ARRAY_LEN(nonsense); i++) {
        unwind_thread_walk(probe.thread, &nonsense[i], &walk);
        assert_true((walk.flags & UNWIND_UNFINISHED) != 0);
        assert_int_equal(walk.count, step_may_be_code(nonsense[i].pc) ? 1 : 0);
    }
    assert_int_equal(errno, 4321);
    stack_probe_release(&probe);
}

int main(void)
{
#define X(name) add_nodes(name, C_NODES);
    STACK_VARIANTS_C(X)
#undef X
    g_all.c_count = g_all.count;
#define X(name) add_nodes(name, CXX_NODES);
    STACK_VARIANTS_CXX(X)
#undef X
    unwind_modules_refresh();
    if (is_emulated()) { // without process_vm_readv, guesses elsewhere yield nothing
        unwind_modules_stay();
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errno_is_kept),
        cmocka_unit_test(calls_throws_and_jumps),
        cmocka_unit_test(small_memories_and_cut_stacks),
        cmocka_unit_test(threads_share_the_rules),
        cmocka_unit_test(a_forked_child_goes_on_where_its_thread_was),
        cmocka_unit_test(coroutines_come_and_go),
        cmocka_unit_test(handlers_walk_through_the_signal_frame),
        cmocka_unit_test(handlers_on_an_alternate_stack_do_too),
        cmocka_unit_test(handlers_that_return_by_code_without_tables),
        cmocka_unit_test(interruptions_at_any_instruction),
        cmocka_unit_test(generated_code_is_followed_by_frame_pointer),
        cmocka_unit_test(modules_take_each_others_place),
        cmocka_unit_test(recursion_10000_deep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
