# SPDX-License-Identifier: MIT
"""What a runtime keeps is not a leak of the program: an empty program of each runtime passes `cairn check --max-leaked 0`.
What a program leaks itself is still found."""
import re
import subprocess

import pytest

from cairn_run import CAIRN, environment

OK, BROKEN = 0, 1

# libtest has its channel and its list in hand when it ends; the last test makes it end early.
TESTS = """
#[test] fn at_once() {}
#[test] fn later() { std::thread::sleep(std::time::Duration::from_millis(30)) }
#[test] fn leaks() { if std::env::var_os("LEAK").is_some() { std::mem::forget(vec![0u8; 777]) } }
#[test] fn fails() { assert!(std::env::var_os("FAIL").is_none()) }
"""

# Thread-local objects of a thread that runs on, buffers of both streams, a backtrace, a channel.
STD = """
use std::{cell::RefCell, io::Write, sync::mpsc, thread};
thread_local! { static OWN: RefCell<Vec<u8>> = RefCell::new(Vec::new()); }
fn main() {
    print!("no line");
    std::io::stderr().write_all(b"").unwrap();
    let _ = std::io::stdin().lines().count();
    let _ = std::panic::catch_unwind(|| panic!("a backtrace"));
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || { OWN.with(|own| own.borrow_mut().push(1)); sender.send(1) }).join().unwrap().unwrap();
    receiver.recv().unwrap();
}
"""

GLIB = """
unsigned g_quark_from_string(const char *text);
void *g_main_loop_new(void *context, int is_running);
void g_main_loop_unref(void *loop);
unsigned long g_object_get_type(void);
int main(void)
{
    g_quark_from_string("a name");
    g_main_loop_unref(g_main_loop_new(0, 0));
    return g_object_get_type() == 0;
}
"""

# An object of a class of the program's, whose initialisation makes a signal and a property of GLib's, and leaks if asked.
GOBJECT = """
#include <stddef.h>
#include <stdlib.h>
void *g_object_new(unsigned long type, const char *first, ...);
void g_object_unref(void *object);
unsigned long g_object_get_type(void);
unsigned long g_type_register_static_simple(unsigned long parent, const char *name, unsigned class_bytes, void *class_init,
                                            unsigned bytes, void *init, unsigned flags);
void *g_param_spec_int(const char *name, const char *nick, const char *text, int low, int high, int value, int flags);
void g_object_class_install_property(void *class, unsigned number, void *property);
unsigned g_signal_new(const char *name, unsigned long type, int flags, unsigned offset, void *accumulator, void *data,
                      void *marshal, unsigned long result, unsigned count, ...);
static unsigned long type;
static void *volatile kept;
static void nothing(void) {}
static void class_init(void **class)
{
    class[3] = class[4] = nothing;
    g_object_class_install_property(class, 1, g_param_spec_int("size", "", "", 0, 9, 1, 3));
    g_signal_new("changed", type, 2, 0, 0, 0, 0, 4, 0);
    if (getenv("LEAK")) { kept = malloc(777); }
}
int main(void)
{
    type = g_type_register_static_simple(g_object_get_type(), "Box", 136, class_init, 24, 0, 0);
    g_object_unref(g_object_new(type, NULL));
    return 0;
}
"""

JAVA = """
class Empty {
    public static void main(String[] words) throws Exception {
        if (words.length > 0) {
            var field = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
            field.setAccessible(true);
            ((sun.misc.Unsafe) field.get(null)).allocateMemory(77777);
        }
    }
}
"""


def check(folder, *command, status=OK, env=None, options=()):
    """Run `cairn check --max-leaked 0`; return what it says."""
    done = subprocess.run([CAIRN, "check", "--max-leaked", "0", *options, "--", *command], cwd=folder, env=environment(env),
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == status, (done.stdout, done.stderr)
    return done.stdout


def compiled(folder, source, *flags):
    (folder / "source.rs").write_text(source)
    subprocess.run(["/usr/bin/rustc", "--edition", "2021", *flags, "-o", "program", "source.rs"], cwd=folder,
                   env=environment(), check=True)
    return folder / "program"


@pytest.mark.parametrize("flags", [pytest.param(["-g"], id="debug", marks=pytest.mark.nightly), pytest.param(["-O"], id="release")])
def test_libtest(tmp_path, flags):
    program = compiled(tmp_path, TESTS, "--test", *flags)
    for threads in ("1", "4"):
        check(tmp_path, program, f"--test-threads={threads}")
        said = check(tmp_path, program, f"--test-threads={threads}", env={"LEAK": "1"}, status=BROKEN)
        assert re.search(r"BROKEN +max-leaked +777 B; at most 0 B allowed", said), said
    said = check(tmp_path, program, env={"FAIL": "1", "RUST_BACKTRACE": "1"}, status=BROKEN)
    assert re.search(r"ok +max-leaked +0 B of 0 B", said) and "the program failed" in said, said


@pytest.mark.nightly
def test_std_of_rust(tmp_path):
    program = compiled(tmp_path, STD, "-g")
    for backtrace in ("0", "1"):
        check(tmp_path, program, env={"RUST_BACKTRACE": backtrace})


def test_glib(tmp_path):
    (tmp_path / "source.c").write_text(GLIB)
    subprocess.run(["gcc", "-g", "-o", "program", "source.c", "-l:libgobject-2.0.so.0", "-l:libglib-2.0.so.0"],
                   cwd=tmp_path, check=True)
    check(tmp_path, tmp_path / "program")


def test_gobject(tmp_path):
    """Without the slabs of GLib, in which its blocks would not be seen one by one."""
    (tmp_path / "source.c").write_text(GOBJECT)
    subprocess.run(["gcc", "-g", "-o", "program", "source.c", "-l:libgobject-2.0.so.0", "-l:libglib-2.0.so.0"],
                   cwd=tmp_path, check=True)
    check(tmp_path, tmp_path / "program", env={"G_SLICE": "always-malloc"})
    said = check(tmp_path, tmp_path / "program", env={"G_SLICE": "always-malloc", "LEAK": "1"}, status=BROKEN)
    assert re.search(r"BROKEN +max-leaked +777 B; at most 0 B allowed", said), said


def test_perl(tmp_path):
    """Its program is compiled as it starts; what it makes as it runs is its own."""
    check(tmp_path, "/usr/bin/perl", "-e", "use strict; my $x = 1; sub f { return $x } f();")
    check(tmp_path, "/usr/bin/perl", "-e", "our $kept = 'x' x 77777;", status=BROKEN)


@pytest.mark.nightly
@pytest.mark.parametrize("all_allocators", [[], ["--all-allocators"]], ids=["preload", "agent"])
@pytest.mark.parametrize("command", [["ruby", "-e", "0"], ["php", "-n", "-r", "0;"], ["perl", "-e", "0"], ["node", "-e", "0"],
                                     ["/usr/bin/python3", "-c", "0"], ["java", "-version"]], ids=lambda command: command[0])
def test_each_interpreter_by_each_way_in(tmp_path, command, all_allocators):
    check(tmp_path, *command, options=all_allocators)


@pytest.mark.nightly
def test_what_ruby_makes_as_it_runs_is_its_own(tmp_path):
    check(tmp_path, "ruby", "-e", "$kept = (1..9999).map { |n| n.to_s * 50 }", status=BROKEN)


def test_node(tmp_path):
    check(tmp_path, "node", "-e", "0")


@pytest.mark.parametrize("allocator", [{}, {"PYTHONMALLOC": "malloc"}], ids=["pymalloc", "malloc"])
def test_python(tmp_path, allocator):
    check(tmp_path, "/usr/bin/python3", "-c", "0", env=allocator)
    said = check(tmp_path, "/usr/bin/python3", "-c", "import ctypes; ctypes.CDLL(None).malloc(77777)", status=BROKEN,
                 env=allocator)
    assert re.search(r" 76\.0 KiB ", said), said


@pytest.mark.nightly
def test_java(tmp_path):
    (tmp_path / "Empty.java").write_text(JAVA)
    subprocess.run(["javac", "-nowarn", "Empty.java"], cwd=tmp_path, check=True, capture_output=True)
    for more in ([], ["-Xshare:off"], ["-XX:+UseSerialGC"]):
        check(tmp_path, "java", *more, "-cp", tmp_path, "Empty")
    said = check(tmp_path, "java", "-cp", tmp_path, "Empty", "leak", status=BROKEN)
    assert re.search(r"BROKEN +max-leaked +76\.\d KiB; at most 0 B allowed", said), said


CARGO = """
[package]
name = "empty"
version = "0.1.0"
edition = "2021"
[dependencies]
tokio = { version = "1", features = ["rt-multi-thread", "macros", "signal", "time", "parking_lot"] }
"""
TOKIO = """
#[tokio::main]
async fn main() {
    tokio::spawn(tokio::time::sleep(std::time::Duration::from_millis(5))).await.unwrap();
    tokio::task::spawn_blocking(|| ()).await.unwrap();
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()).unwrap();
    if std::env::var_os("LEAK").is_some() {
        tokio::spawn(async { std::mem::forget(vec![0u8; 777]) }).await.unwrap();
    }
}
"""
DEBIANS = '[source.crates-io]\nreplace-with = "debian"\n[source.debian]\ndirectory = "/usr/share/cargo/registry"\n'


@pytest.mark.nightly
def test_tokio(tmp_path):
    for name, text in (("Cargo.toml", CARGO), ("src/main.rs", TOKIO), (".cargo/config.toml", DEBIANS)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    subprocess.run(["/usr/bin/cargo", "build", "--offline"], cwd=tmp_path, check=True, capture_output=True,
                   env=environment({"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "CARGO_HOME": str(tmp_path / "home")}))
    check(tmp_path, tmp_path / "target/debug/empty")
    said = check(tmp_path, tmp_path / "target/debug/empty", env={"LEAK": "1"}, status=BROKEN)
    assert re.search(r"BROKEN +max-leaked +777 B; at most 0 B allowed", said), said
