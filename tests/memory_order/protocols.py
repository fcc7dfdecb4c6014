# SPDX-License-Identifier: MIT
"""What threads and the recorder exchange through the session, as threads for arm_model.py.

Each protocol names the orders on which it relies (`needs`), and where the source has them: a line
of that file must contain the text. `bad` says what must not happen. docs/design/memory-order.md
explains them. A protocol is a function of its orders, {name: order}, and gives what can_happen() takes:
initial values, threads, bad results, and bad final values if those matter.
"""
from arm_model import Change, Clock, Fence, Load, Store

PROTOCOLS = []


class Place:
    """`is_spare`: another order of the protocol suffices."""

    def __init__(self, order, path, text, is_spare=False):
        self.order, self.path, self.text, self.is_spare = order, path, text, is_spare


class Protocol:
    def __init__(self, name, needs, build, clocks=0):
        self.name, self.needs, self.build, self.clocks = name, needs, build, clocks


def protocol(clocks=0, **needs):
    def add(build):
        PROTOCOLS.append(Protocol(build.__name__, needs, build, clocks))
        return build
    return add


def on(order, path, text):
    return Place(order, "src/" + path, text)


def spare(place):
    return Place(place.order, place.path, place.text, is_spare=True)


WRITE_POS = on("release", "target/producer/lane_producer.h", "&p->lane->write_pos, p->pos, memory_order_release")
SEE_WRITTEN = on("acquire", "recorder/session/lane_consumer.c", "&c->lane->write_pos, memory_order_acquire")
SEE_READ = on("acquire", "target/producer/lane_producer.c", "&p->lane->read_pos, memory_order_acquire")
READ_POS = on("seq_cst", "recorder/session/lane_consumer.c", "&c->lane->read_pos, pos, memory_order_seq_cst")


@protocol(publish=WRITE_POS, refresh=SEE_WRITTEN)
def records_are_complete(o):
    """The ring, T to R; also ring_bytes, the counters of unsampled blocks, the owner of a lane."""
    def thread():
        yield Store("record", 1)
        yield Store("write_pos", 1, o["publish"])

    def recorder():
        written = yield Load("write_pos", o["refresh"])
        return written, (yield Load("record"))
    return {"record": 0, "write_pos": 0}, [thread, recorder], lambda r: r[1] == (1, 0)


@protocol(consume=READ_POS, check=SEE_READ)
def records_are_copied_before_their_room_is_used_again(o):
    def recorder():
        record = yield Load("record")
        yield Store("read_pos", 1, o["consume"])
        return record

    def thread():
        if (yield Load("read_pos", o["check"])) == 1:
            yield Store("record", 2)
    return {"record": 1, "read_pos": 0}, [recorder, thread], lambda r: r[0] == 2


@protocol(
    wait=on("seq_cst", "target/producer/lane_producer.c", "&p->lane->producer_waiting, waiting, memory_order_seq_cst"),
    look=on("seq_cst", "target/producer/lane_producer.c", "&p->lane->read_pos, memory_order_seq_cst"),
    consume=READ_POS,
    wake=on("seq_cst", "recorder/session/lane_consumer.c", "&c->lane->producer_waiting, memory_order_seq_cst"))
def who_waits_for_room_is_woken(o):
    def thread():
        yield Store("waiting", 1, o["wait"])
        return (yield Load("read_pos", o["look"]))

    def recorder():
        yield Store("read_pos", 1, o["consume"])
        return (yield Load("waiting", o["wake"]))
    return {"waiting": 0, "read_pos": 0}, [thread, recorder], lambda r: r == [0, 0]


def only_if_free(owner):
    return lambda value: owner if value == 0 else None


TAKE = on("acquire", "target/producer/entry/lane_turn.c", "memory_order_acquire, memory_order_relaxed")
GIVE = on("release", "target/producer/entry/lane_turn.c", "&p->lane->book.owner, BOOK_OF_NEITHER, memory_order_release")


@protocol(take=TAKE, give=GIVE,
          lock=on("acquire", "recorder/session/book_reader.c", "memory_order_acquire, memory_order_relaxed"),
          unlock=on("release", "recorder/session/book_reader.c", "&lane->book.owner, BOOK_OF_NEITHER, memory_order_release"))
def one_owner_of_a_book_sees_what_the_other_has_done(o):
    def user(me, take, give):
        def run():
            if (yield Change("owner", only_if_free(me), o[take])) != 0:
                return None
            counted = yield Load("counted")
            yield Store("counted", counted + 1)
            yield Store("owner", 0, o[give])
            return counted
        return run
    return ({"owner": 0, "counted": 0}, [user(1, "take", "give"), user(2, "lock", "unlock")],
            lambda r: None not in r,
            lambda final: final["counted"] != 2)


@protocol(leave=on("release", "target/preload/process/thread_state.h", "&t->guard, 0, memory_order_release"),
          look=on("acquire", "recorder/session/book_reader.c", "lane_guard(lane), memory_order_acquire"))
def the_stores_of_a_hook_are_complete_when_its_guard_is_free(o):
    def hook():
        yield Store("counted", 1)
        yield Store("guard", 0, o["leave"])

    def recorder():
        guard = yield Load("guard", o["look"])
        return guard, (yield Load("counted"))
    return {"guard": 1, "counted": 0}, [hook, recorder], lambda r: r[1] == (0, 0)


@protocol(
    publish=on("release", "target/agent/agent_modules.c", "&a->list_count, count + 1, memory_order_release"),
    before=on("release", "target/agent/agent_modules.c", "atomic_thread_fence(memory_order_release)"),
    first=on("acquire", "target/agent/agent_modules.c", "&a->list_count, memory_order_acquire"),
    again=on("acquire", "target/agent/agent_modules.c", "atomic_thread_fence(memory_order_acquire)"))
def a_module_is_of_one_list(o):
    """Two refreshes: list 1 is written and becomes current, then list 0 is written over."""
    def loader():
        yield Store("one", 1)
        yield Store("count", 1, o["publish"])
        if o["before"] != "relaxed":
            yield Fence(o["before"])
        yield Store("zero", 2)

    def walker():
        count = yield Load("count", o["first"])
        module = yield Load("zero" if count == 0 else "one")
        if o["again"] != "relaxed":
            yield Fence(o["again"])
        return count, module, (yield Load("count"))
    return ({"zero": 0, "one": 9, "count": 0}, [loader, walker],
            lambda r: r[1][0] == r[1][2] and r[1][1] != r[1][0])


@protocol(
    rest=spare(on("release", "recorder/session/session_clock.c", "memory_order_release")),
    seen=spare(on("acquire", "recorder/session/session_clock.c", "recorder_wake, memory_order_acquire")),
    wake=on("release", "session/recorder_wake.h", "&session->recorder_wake, 1, memory_order_release"))
def a_wake_of_a_resting_clock_is_not_lost(o):
    """The recorder sleeps while recorder_wake is what it was before the clock rested. One of its own two
    orders would do."""
    def recorder():
        wakes = yield Load("wakes", o["seen"])
        yield Store("clock", 1, o["rest"])
        return wakes

    def thread():
        clock = yield Load("clock")
        if clock == 1:
            yield Change("wakes", lambda value: value + 1, o["wake"])
        return clock
    return {"wakes": 0, "clock": 0}, [recorder, thread], lambda r: r[0] == 1


@protocol(put=on("release", "target/producer/words/live_words.h", "atomic_thread_fence(memory_order_release)"))
def a_word_precedes_its_block(o):
    """Even where the program hands the block over by a relaxed store: its address leads to the word."""
    def first():
        yield Store("word", 1)
        if o["put"] != "relaxed":
            yield Fence(o["put"])
        yield Store("block", 1)

    def second():
        seen = yield Load("block")
        return seen, (yield Load("word", depends=True))
    return {"word": 0, "block": 0}, [first, second], lambda r: r[1] == (1, 0)


@protocol()
def a_taken_word_stays_taken(_o):
    """The allocator's own lock is between the take of a free and the put of the next malloc."""
    def freeing_it():
        word = yield Load("word")
        yield Store("word", 0)
        yield Store("block", 1, "release")
        return word

    def getting_it():
        seen = yield Load("block", "acquire")
        if seen == 1:
            yield Store("word", 2)
        return seen
    return ({"word": 1, "block": 0}, [freeing_it, getting_it],
            lambda r: r[1] == 1, lambda final: final["word"] != 2)


@protocol(
    size=on("acq_rel", "target/producer/words/live_words.c", "word, &seen, 0, memory_order_acq_rel"))
def a_stale_large_block_has_its_own_size(o):
    """Two threads find one stale word; the second puts a new size once the word has ended."""
    def ending():
        size = yield Load("size")
        before = yield Change("word", lambda value: 0 if value == 1 else None, o["size"])
        return before, size

    def putting():
        yield Change("word", lambda value: 0 if value == 1 else None, o["size"])
        yield Store("size", 2)
    return {"word": 1, "size": 1}, [ending, putting], lambda r: r[0][0] == 1 and r[0][1] != 1


ADD = on("acq_rel", "base/arch/aarch64/exchange16_arch.h", "stlxp")


@protocol(
    add=spare(ADD),
    alone=spare(on("acquire", "session/books/shared_sum.c", "&sum->thread_count, memory_order_acquire")),
    leave=spare(on("release", "session/books/shared_sum.c", "&sum->thread_count, threads, memory_order_release")))
def who_is_alone_has_what_others_added(o):
    def first():
        threads = yield Load("threads", o["alone"])
        return threads, (yield Change("sum", {0: 1, 5: 6}.get, o["add"]))

    def second():
        yield Change("sum", {0: 5, 1: 6}.get, o["add"])
        yield Change("threads", {2: 1}.get, o["leave"])
    return {"threads": 2, "sum": 0}, [first, second], lambda r: r[0] == (1, 0)


@protocol(
    joins=on("acquire", "session/books/shared_sum.c", "&sum->joins, memory_order_acquire"),
    join=on("release", "session/books/shared_sum.c", "&sum->joins, 1, memory_order_release"),
    add=ADD,
    low=on("acquire", "session/books/shared_sum.h", "&sum->state.low, __ATOMIC_ACQUIRE"),
    still=spare(on("acquire", "session/books/shared_sum.h", "&sum->thread_count, memory_order_acquire")))
def a_thread_that_was_not_alone_learns_it(o):
    """B comes, adds 5, takes 5 back and goes, all after A's addition. The sum is as before then (101 stands
    for 100 once more). A, which reads it, must not find that it was alone."""
    def first():
        joins = yield Load("joins", o["joins"])
        is_alone = (yield Load("threads", "acquire")) == 1
        before = yield Change("sum", {0: 100, 5: 105}.get, o["add"])
        low = yield Load("sum", o["low"])
        still = (yield Load("threads", o["still"])) == 1
        same = (yield Load("joins")) == joins
        return is_alone and still and same, before, low

    def second():
        yield Change("threads", {1: 2}.get)
        yield Change("joins", {0: 1}.get, o["join"])
        yield Change("sum", {0: 5, 100: 105}.get, o["add"])
        yield Change("sum", {5: 0, 105: 101}.get, o["add"])
        yield Change("threads", {2: 1}.get, "release")
    return {"joins": 0, "threads": 1, "sum": 0}, [first, second], lambda r: r[0] == (True, 0, 101)


@protocol(
    open=on("seq_cst", "target/producer/session_join.c", "&g_lanes.at[index], lane, memory_order_seq_cst"),
    look=on("seq_cst", "target/producer/session_join.c", "&mapping->is_lean, memory_order_seq_cst"),
    begin=on("seq_cst", "target/producer/session_join.c", "&mapping->is_lean, true, memory_order_seq_cst"),
    find=on("seq_cst", "target/producer/session_join.c", "&g_lanes.at[i], memory_order_seq_cst"))
def a_lane_in_use_stays_mapped(o):
    """One thread opens a lane in the reserved room, another one gives the room back."""
    def opening():
        yield Change("lane", only_if_free(1), o["open"])
        return (yield Load("is_lean", o["look"]))

    def leaning():
        yield Change("is_lean", only_if_free(1), o["begin"])
        return (yield Load("lane", o["find"]))
    return {"lane": 0, "is_lean": 0}, [opening, leaning], lambda r: r == [0, 0]


@protocol(
    see=on("acquire", "target/producer/words/live_words.h", "atomic_load_explicit(below, memory_order_acquire)"),
    mark=on("seq_cst", "target/producer/words/region_cut.c", "lacks_tiny, 1, memory_order_seq_cst"),
    ask=on("seq_cst", "target/producer/words/region_cut.c", "tiny_below, memory_order_seq_cst"))
def no_tiny_word_goes_to_a_table_that_is_gone(o):
    """The recorder says that blocks need tiny words, while one thread gives their table back and another one puts."""
    def recorder():
        yield Store("tiny_below", 17)

    def putting():
        below = yield Load("tiny_below", o["see"])
        return below, (yield Load("lacks_tiny"))

    def cutting():
        yield Store("lacks_tiny", 1, o["mark"])
        return (yield Load("tiny_below", o["ask"]))
    return {"tiny_below": 0, "lacks_tiny": 0}, [recorder, putting, cutting], lambda r: r[1:] == [(17, 0), 0]


GIVE = on("release", "session/books/free_rows.h", "rows->ranges + range / 64, bit, memory_order_release")


@protocol(publish=WRITE_POS, refresh=spare(SEE_WRITTEN), give=spare(GIVE),
          find=on("acquire", "session/books/free_rows.h", "rows->ranges + i, memory_order_acquire"))
def a_number_that_is_taken_again_is_of_its_level(o):
    """One thread takes a range and stores its level, R gives a number of it back, another thread takes that."""
    def first():
        yield Store("level", 5)
        yield Store("write_pos", 1, o["publish"])

    def recorder():
        if (yield Load("write_pos", o["refresh"])) == 1:
            yield Change("range", {0: 1}.get, o["give"])

    def second():
        found = yield Load("range", o["find"])
        return found, (yield Load("level"))
    return ({"level": 0, "write_pos": 0, "range": 0}, [first, recorder, second], lambda r: r[2] == (1, 0))


@protocol(give=GIVE,
          clear=on("acquire", "session/books/free_rows.h", "rows->ranges + range / 64, ~bit, memory_order_acquire"))
def a_free_number_is_in_a_range_that_is_looked_at(o):
    """R gives a number while a thread, which found the range empty, clears its bit and looks again."""
    def recorder():
        yield Change("number", {0: 1}.get)
        yield Change("range", {0: 1, 1: 1}.get, o["give"])

    def thread():
        yield Change("range", {0: 0, 1: 0}.get, o["clear"])
        return (yield Load("number"))
    return ({"number": 0, "range": 1}, [recorder, thread], lambda r: r[1] == 0,
            lambda final: final["range"] == 0)
