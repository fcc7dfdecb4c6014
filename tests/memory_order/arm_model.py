# SPDX-License-Identifier: MIT
"""All executions of a few threads that the memory model of AArch64 allows.

A thread is a generator of operations: it yields a Load and receives the value, and so on, and
returns what the test asks about. Each run of the generators is a candidate, with every load reading
every value that some store of its variable writes. Candidates, from which store each load reads, and
the order of the stores of each variable are enumerated without exception. The model then decides
(Arm ARM, B2.3; Alglave and others, "Armed Cats", TOPLAS 2021):

  internal    loads and stores of one variable agree with the program's order
  atomic      nothing comes between the load and the store of a read-modify-write
  external    no circle of: reading from another thread's store, being overwritten by one, and what
              stays in the order of the program, which is kept only by acquire, release, barriers,
              and an address that depends on a load

Dependencies of values and branches are left out, because C does not promise them. So more is allowed
than a processor does, and what is never allowed here is never seen there.

Orders are compiled as gcc and clang do, in the weaker of two ways each: acquire is LDAPR, seq_cst
LDAR, release STLR, a read-modify-write a pair of exclusive accesses, the fence for acquire DMB ISHLD,
other fences DMB ISH. Clock is a read of CNTVCT_EL0. The counter is the same on all processors and
only grows, so of two reads the lower one came first. Nothing keeps a read of it in its place but an
ISB: behind a DSB, `after_loads` keeps it behind earlier loads, `before_all` keeps later accesses
behind it. A store of what was read comes later in any case (`of_clock`).
"""
import itertools

ACQUIRES = ("acquire", "acq_rel", "seq_cst")
RELEASES = ("release", "acq_rel", "seq_cst")


class Load:
    def __init__(self, var, order="relaxed", depends=False):
        self.var, self.order, self.depends = var, order, depends


class Store:
    def __init__(self, var, value, order="relaxed", of_clock=False):
        self.var, self.value, self.order, self.of_clock = var, value, order, of_clock


class Change:
    """A read-modify-write: `new` computes the value to store; None: nothing is stored."""

    def __init__(self, var, new, order="relaxed"):
        self.var, self.new, self.order = var, new, order


class Fence:
    def __init__(self, order):
        self.order = order


class Clock:
    def __init__(self, after_loads=True, before_all=False):
        self.after_loads, self.before_all = after_loads, before_all


class Event:
    """kind R, W, F (fence) or C (clock); `pair` is the load of a read-modify-write."""

    def __init__(self, kind, var=None, value=None, order="relaxed", **more):
        self.kind, self.var, self.value, self.order = kind, var, value, order
        self.depends = more.get("depends", False)
        self.of_clock = more.get("of_clock", False)
        self.after_loads = more.get("after_loads", False)
        self.before_all = more.get("before_all", False)
        self.pair = more.get("pair")
        self.thread = self.place = -1


def replay(thread, answers):
    """Run a thread with these values for its first reads. Return its events, and its result; or, in
    place of the result, the operation whose answer is missing."""
    events, answers = [], list(answers)
    running, send = thread(), None
    while True:
        try:
            op = running.send(send)
        except StopIteration as end:
            return events, ("result", end.value)
        send = None
        if isinstance(op, Store):
            events.append(Event("W", op.var, op.value, op.order, of_clock=op.of_clock))
        elif isinstance(op, Fence):
            events.append(Event("F", order=op.order))
        elif not answers:
            return events, ("needs", op)
        else:
            send = answers.pop(0)
            events.extend(read_events(op, send))


def read_events(op, value):
    if isinstance(op, Clock):
        return [Event("C", value=value, after_loads=op.after_loads, before_all=op.before_all)]
    if isinstance(op, Load):
        return [Event("R", op.var, value, op.order, depends=op.depends)]
    read = Event("R", op.var, value, op.order)
    new = op.new(value)
    return [read] if new is None else [read, Event("W", op.var, new, op.order, pair=read)]


def traces(thread, domains, clocks):
    """Every run of a thread: (events, result)."""
    waiting, found = [()], []
    while waiting:
        answers = waiting.pop()
        events, (what, op) = replay(thread, answers)
        if what == "result":
            found.append((answers, op))
            continue
        values = range(1, clocks + 1) if isinstance(op, Clock) else domains[op.var]
        waiting.extend(answers + (value,) for value in values)
    return found


def domains_of(init, threads, clocks):
    """The values that each variable can have: stores of runs that read such values. A value comes
    from at most as many stores, each of which reads the one before, as there are stores."""
    domains = {var: {value} for var, value in init.items()}
    rounds, done = 1, 0
    while done < rounds:
        longest = 0
        for thread in threads:
            runs = [replay(thread, answers)[0] for answers, _ in traces(thread, domains, clocks)]
            stores = [[event for event in events if event.kind == "W"] for events in runs]
            longest += max(len(events) for events in stores)
            for event in itertools.chain.from_iterable(stores):
                domains[event.var].add(event.value)
        rounds, done = longest, done + 1
    return domains


def is_kept(first, second, between):
    """Whether two events of a thread stay in the program's order."""
    if first.kind == "C" or second.kind == "C":
        return (first.kind == "C" and (first.before_all or second.of_clock)) or \
            (first.kind == "R" and second.kind == "C" and second.after_loads)
    is_acquired = first.kind == "R" and first.order in ACQUIRES
    is_released = second.kind == "W" and second.order in RELEASES
    is_strong = first.kind == "W" and first.order in RELEASES and \
        second.kind == "R" and second.order == "seq_cst"
    is_dependent = first.kind == "R" and second.depends
    is_fenced = any(fence.order != "acquire" or first.kind == "R" for fence in between)
    return is_acquired or is_released or is_strong or is_dependent or is_fenced or second.pair is first


def kept_edges(events):
    edges = []
    for i, first in enumerate(events):
        fences = []
        for second in events[i + 1:]:
            if second.kind == "F":
                fences.append(second)
            elif first.kind != "F" and is_kept(first, second, fences):
                edges.append((first, second))
    return edges


def has_circle(edges):
    after = {}
    for first, second in edges:
        after.setdefault(first, []).append(second)
    state = {}
    for root in after:
        stack = [(root, iter(after.get(root, ())))] if root not in state else []
        if stack:
            state[root] = 1
        while stack:
            node, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                state[node] = 2
                stack.pop()
            elif state.get(following) == 1:
                return True
            elif following not in state:
                state[following] = 1
                stack.append((following, iter(after.get(following, ()))))
    return False


def is_consistent(order, reads_from, fixed, own):
    """Whether the model allows an execution. `order`: {variable: its stores, the initial one first}.
    `fixed`: what the threads keep; `own`: accesses of one variable by one thread, in order."""
    rank = {write: i for writes in order.values() for i, write in enumerate(writes)}
    communication = []
    for writes in order.values():
        communication.extend(zip(writes, writes[1:]))
    for read, source in reads_from.items():
        communication.append((source, read))
        writes = order[read.var]
        if rank[source] + 1 < len(writes):
            communication.append((read, writes[rank[source] + 1]))
    for write in rank:
        if write.pair is not None and rank[reads_from[write.pair]] + 1 != rank[write]:
            return False
    if has_circle(own + communication):
        return False
    outside = [(a, b) for a, b in communication if a.thread != b.thread]
    # What is overwritten later is overwritten, across threads, too.
    for writes in order.values():
        outside.extend((a, b) for a, b in itertools.combinations(writes, 2) if a.thread != b.thread)
    for read, source in reads_from.items():
        outside.extend((read, later) for later in order[read.var][rank[source] + 1:]
                       if later.thread != read.thread)
    return not has_circle(fixed + outside)


def orders_of(init, events):
    """Every order of the stores of each variable that keeps each thread's own."""
    choices = []
    for var, value in init.items():
        first = Event("W", var, value)
        writes = [event for event in events if event.kind == "W" and event.var == var]
        choices.append([(var, (first,) + order) for order in itertools.permutations(writes)
                        if all(a.thread != b.thread or a.place < b.place
                               for a, b in itertools.combinations(order, 2))])
    return (dict(choice) for choice in itertools.product(*choices))


def has_sources(init, own_events):
    """Whether each read can read from some store."""
    stored = {(event.var, event.value) for events in own_events for event in events if event.kind == "W"}
    return all(event.value == init[event.var] or (event.var, event.value) in stored
               for events in own_events for event in events if event.kind == "R")


def executions(init, threads, clocks=0, bad=lambda results: True):
    """Yield the final values of each allowed execution whose results are bad."""
    domains = domains_of(init, threads, clocks)
    runs = [[(replay(thread, answers)[0], result) for answers, result in traces(thread, domains, clocks)]
            for thread in threads]
    for chosen in itertools.product(*runs):
        own_events = [events for events, _ in chosen]
        times = [event.value for events in own_events for event in events if event.kind == "C"]
        if len(set(times)) == len(times) and bad([result for _, result in chosen]) and \
                has_sources(init, own_events):
            yield from allowed(init, own_events)


def allowed(init, own_events):
    fixed, own = [], []
    for number, events in enumerate(own_events):
        for place, event in enumerate(events):
            event.thread, event.place = number, place
        fixed += kept_edges(events)
        own += [(a, b) for a, b in itertools.combinations(events, 2)
                if a.var is not None and a.var == b.var]
    everything = [event for events in own_events for event in events]
    clocks = sorted((event for event in everything if event.kind == "C"), key=lambda e: e.value)
    fixed += list(zip(clocks, clocks[1:]))
    reads = [event for event in everything if event.kind == "R"]
    for order in orders_of(init, everything):
        sources = [[write for write in order[read.var] if write.value == read.value]
                   for read in reads]
        for source in itertools.product(*sources):
            if is_consistent(order, dict(zip(reads, source)), fixed, own):
                yield {var: writes[-1].value for var, writes in order.items()}


def can_happen(init, threads, bad, final=lambda values: True, clocks=0):
    """Whether some allowed execution has bad results of its threads, and such final values."""
    return any(final(values) for values in executions(init, threads, clocks, bad))
