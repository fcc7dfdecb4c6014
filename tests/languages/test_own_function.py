# SPDX-License-Identifier: MIT
"""The first finding names the program's own function, `remember`, never one of the libraries through which it allocates:
programs in C++ and Rust with containers, tasks, channels, parsers and allocators of the libraries that people use. The
programs that need more than a compiler are built in `make nightly`, from Debian's packages."""
import json
import subprocess

import pytest

from cairn_run import CAIRN, environment, some_of

# By name: the program. NOINLINE keeps its function.
CPP = {
    "std_async": """
#include <any>
#include <functional>
#include <future>
#include <map>
#include <memory>
static std::map<int, std::shared_ptr<std::any>> kept;
NOINLINE void remember(int i) { kept.emplace(i, std::make_shared<std::any>(std::string(200, 'x'))); }
static void call() { std::function<void(int)> f = remember; for (int i = 0; i < 20000; i++) f(i); }
int main() { std::async(std::launch::async, call).get(); }
""",
    "own_allocator": """
#include <cstdlib>
#include <list>
#include <vector>
namespace app {
template <class T> struct Counting {
    using value_type = T;
    Counting() = default;
    template <class U> Counting(const Counting<U> &) {}
    T *allocate(size_t n) { return static_cast<T *>(std::malloc(n * sizeof(T))); }
    void deallocate(T *p, size_t) { std::free(p); }
    template <class U> bool operator==(const Counting<U> &) const { return true; }
    template <class U> bool operator!=(const Counting<U> &) const { return false; }
};
using Numbers = std::vector<int, Counting<int>>;
static std::list<Numbers, Counting<Numbers>> kept;
}
NOINLINE void remember(int i) { app::kept.emplace_back(100 + i % 7, i); }
int main() { for (int i = 0; i < 15000; i++) remember(i); }
""",
    "std_streams": """
#include <algorithm>
#include <iterator>
#include <sstream>
#include <unordered_map>
#include <vector>
static std::unordered_map<std::string, std::vector<std::string>> kept;
NOINLINE void remember(int i)
{
    std::ostringstream out;
    out << "line " << i << std::string(200, 'x');
    std::istringstream in(out.str());
    std::copy(std::istream_iterator<std::string>(in), {}, std::back_inserter(kept["a" + std::to_string(i)]));
}
int main() { for (int i = 0; i < 15000; i++) remember(i); }
""",
    "std_regex": """
#include <deque>
#include <regex>
static std::deque<std::regex> rules;
NOINLINE void remember(int i) { rules.emplace_back("(order|item)-" + std::to_string(i) + "[a-z]+(x|y)?"); }
int main() { for (int i = 0; i < 600; i++) remember(i); }
""",
    "coroutines": """
#include <coroutine>
#include <exception>
#include <vector>
struct Task {
    struct promise_type {
        Task get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_always initial_suspend() { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() { std::terminate(); }
    };
    std::coroutine_handle<promise_type> handle;
};
static std::vector<Task> tasks;
Task remember(int i) { char room[500]; room[i % 500] = 1; co_await std::suspend_always{}; room[0]++; }
int main() { for (int i = 0; i < 10000; i++) { tasks.push_back(remember(i)); tasks.back().handle.resume(); } }
""",
}
# The same, with the flags for its library.
CPP_LIBRARIES = {
    "absl_map": ("$(pkg-config --libs absl_flat_hash_map absl_strings)", """
#include <absl/container/flat_hash_map.h>
#include <absl/strings/str_cat.h>
#include <string>
static absl::flat_hash_map<int, std::string> orders;
NOINLINE void remember(int i) { orders[i] = absl::StrCat(std::string(200, 'x'), i); }
int main() { for (int i = 0; i < 20000; i++) remember(i); }
"""),
    "boost_shared": ("", """
#include <boost/container/vector.hpp>
#include <boost/function.hpp>
#include <boost/make_shared.hpp>
#include <string>
static boost::container::vector<boost::shared_ptr<std::string>> kept;
NOINLINE void remember(int i) { kept.push_back(boost::make_shared<std::string>(300, 'a' + i % 20)); }
int main() { boost::function<void(int)> call = remember; for (int i = 0; i < 20000; i++) call(i); }
"""),
    "qt_hash": ("-I/usr/include/x86_64-linux-gnu/qt5 -I/usr/include/x86_64-linux-gnu/qt5/QtCore -fPIC -lQt5Core", """
#include <QHash>
#include <QRunnable>
#include <QString>
#include <QThreadPool>
static QHash<int, QString> *kept;
NOINLINE void remember(int i) { kept->insert(i, QString("order %1 of the whole day").arg(i).repeated(5)); }
class Task : public QRunnable { void run() override { for (int i = 0; i < 20000; i++) remember(i); } };
int main() { kept = new QHash<int, QString>; QThreadPool pool; pool.start(new Task); pool.waitForDone(); }
"""),
    "json": ("", """
#include <nlohmann/json.hpp>
static nlohmann::json all = nlohmann::json::array();
NOINLINE void remember(int i) { all.push_back({{"id", i}, {"name", "a name that is long"}, {"items", {1, 2, 3}}}); }
int main() { for (int i = 0; i < 8000; i++) remember(i); }
"""),
    "fmt_text": ("-lfmt", """
#include <fmt/format.h>
#include <string>
#include <vector>
static std::vector<std::string> lines;
NOINLINE void remember(int i) { lines.push_back(fmt::format("{:>300} {}", i, "x")); }
int main() { for (int i = 0; i < 20000; i++) remember(i); }
"""),
}

RUST = {
    "own_allocator": """
use std::alloc::{GlobalAlloc, Layout, System};
use std::{collections::BTreeMap, sync::Arc};
struct Own;
unsafe impl GlobalAlloc for Own {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 { System.alloc(layout) }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) { System.dealloc(block, layout) }
}
#[global_allocator]
static OWN: Own = Own;
#[inline(never)]
fn remember(kept: &mut BTreeMap<usize, Arc<str>>, i: usize) { kept.insert(i, "order".repeat(50).into()); }
fn main() { let mut kept = BTreeMap::new(); for i in 0..20000 { remember(&mut kept, i); } assert!(kept.len() > 1); }
""",
}
# Of crates that Debian has.
RUST_CRATES = {
    "tokio_tasks": """
#[inline(never)]
fn remember(i: usize) {
    tokio::spawn(async move {
        let room = [i; 40];
        tokio::time::sleep(std::time::Duration::from_secs(3600)).await;
        assert!(room[1] == i);
    });
}
#[tokio::main]
async fn main() { for i in 0..10000 { remember(i); } tokio::task::yield_now().await; }
""",
    "tokio_queue": """
use tokio::sync::mpsc::{unbounded_channel, UnboundedSender};
#[inline(never)]
fn remember(sender: &UnboundedSender<[u64; 32]>, i: u64) { sender.send([i; 32]).unwrap(); }
#[tokio::main]
async fn main() {
    let (sender, _receiver) = unbounded_channel();
    let task = tokio::spawn(async move { for i in 0..10000 { remember(&sender, i); } sender });
    let _sender = task.await.unwrap();
}
""",
    "tokio_future": """
async fn remember(i: usize) -> Vec<u8> { tokio::task::yield_now().await; vec![i as u8; 500] }
#[tokio::main]
async fn main() {
    let mut kept = Vec::new();
    for i in 0..10000 { kept.push(tokio::spawn(remember(i)).await.unwrap()); }
    assert!(kept.len() > 1);
}
""",
    "bytes_slices": """
use bytes::{BufMut, Bytes, BytesMut};
#[inline(never)]
fn remember(kept: &mut Vec<Bytes>, i: usize) {
    let mut buffer = BytesMut::with_capacity(4096);
    buffer.put_slice(&[i as u8; 900]);
    kept.push(buffer.split_to(16).freeze());
}
fn main() { let mut kept = Vec::new(); for i in 0..3000 { remember(&mut kept, i); } assert!(kept.len() > 1); }
""",
    "hashbrown_map": """
use hashbrown::HashMap;
#[inline(never)]
fn remember(kept: &mut HashMap<usize, String>, i: usize) { kept.insert(i, "order".repeat(40)); }
fn main() { let mut kept = HashMap::new(); for i in 0..20000 { remember(&mut kept, i); } assert!(kept.len() > 1); }
""",
    "rayon_map": """
use rayon::prelude::*;
#[inline(never)]
fn remember(i: usize) -> String { format!("{:>300}", i) }
fn main() {
    let kept: Vec<String> = (0..20000usize).into_par_iter().map(remember).collect();
    assert!(kept.len() > 1);
}
""",
    "crossbeam_queue": """
use crossbeam_channel::{unbounded, Sender};
#[inline(never)]
fn remember(sender: &Sender<[u64; 32]>, i: u64) { sender.send([i; 32]).unwrap(); }
fn main() {
    let (sender, _receiver) = unbounded();
    std::thread::spawn(move || { for i in 0..20000 { remember(&sender, i); } sender }).join().unwrap();
}
""",
    "json_values": r"""
use serde_json::{from_str, Value};
#[inline(never)]
fn remember(kept: &mut Vec<Value>, i: usize) {
    kept.push(from_str(&format!("{{\"id\":{i},\"name\":\"a name\",\"items\":[1,2,3]}}")).unwrap());
}
fn main() { let mut kept = Vec::new(); for i in 0..8000 { remember(&mut kept, i); } assert!(kept.len() > 1); }
""",
    "regex_rules": """
use regex::Regex;
#[inline(never)]
fn remember(kept: &mut Vec<Regex>, i: usize) { kept.push(Regex::new(&format!("(order|item)-{i}[a-z]+(x|y)?")).unwrap()); }
fn main() { let mut kept = Vec::new(); for i in 0..120 { remember(&mut kept, i); } assert!(kept.len() > 1); }
""",
    "futures_boxed": """
use futures::future::{pending, BoxFuture, FutureExt};
use futures::stream::{FuturesUnordered, StreamExt};
#[inline(never)]
fn remember(all: &mut FuturesUnordered<BoxFuture<'static, ()>>, i: usize) {
    all.push(async move { let room = [i; 60]; pending::<()>().await; assert!(room[1] == i); }.boxed());
}
fn main() {
    let mut all = FuturesUnordered::new();
    for i in 0..10000 { remember(&mut all, i); }
    futures::executor::block_on(async { let _ = futures::poll!(all.next()); });
}
""",
    "small_and_index": """
use indexmap::IndexMap;
use smallvec::SmallVec;
#[inline(never)]
fn remember(kept: &mut IndexMap<usize, SmallVec<[u64; 4]>>, i: usize) { kept.insert(i, (0..40u64).collect()); }
fn main() { let mut kept = IndexMap::new(); for i in 0..10000 { remember(&mut kept, i); } assert!(kept.len() > 1); }
""",
}
CARGO = """
[package]
name = "orders"
version = "0.1.0"
edition = "2021"
[profile.release]
debug = 1
[dependencies]
tokio = { version = "1", features = ["rt-multi-thread", "macros", "sync", "time"] }
bytes = "1"
hashbrown = "0.12"
rayon = "1"
crossbeam-channel = "0.5"
futures = { version = "0.3", default-features = false, features = ["std", "executor", "async-await"] }
serde_json = "1"
regex = "1"
smallvec = "1"
indexmap = "1"
"""
DEBIANS = '[source.crates-io]\nreplace-with = "debian"\n[source.debian]\ndirectory = "/usr/share/cargo/registry"\n'


def run(folder, *command):
    done = subprocess.run(command, cwd=folder, env=environment(), check=True, capture_output=True, text=True, timeout=300)
    return done.stdout


def name_of(function):
    """The last part of the name, without template arguments, parameters and closures."""
    return function.replace("::{{closure}}", "").split("(")[0].split("<")[0].split("::")[-1]


def check(folder, program):
    """Record the program. All that speaks of its peak must name `remember` first."""
    run(folder, CAIRN, "-q", "-o", "run.cairn", program)
    first = json.loads(run(folder, CAIRN, "report", "--json", "run.cairn"))["findings"]["items"][0]
    assert name_of(first["function"]) == "remember", first
    assert first["bytes"] > first["whole_bytes"] * 3 // 4, first
    shown = run(folder, CAIRN, "top", "--plain", "--count", "1", "--sort", "peak", "run.cairn")
    row = shown[shown.index("FUNCTION, PLACE"):].splitlines()[1]
    assert "remember" in row, shown


@pytest.fixture(scope="session", name="crates")
def fixture_crates(tmp_path_factory):
    """All programs of crates, built once: without optimization, and with it."""
    folder = tmp_path_factory.mktemp("crates")
    texts = {f"src/bin/{name}.rs": text for name, text in RUST_CRATES.items()}
    for name, text in {"Cargo.toml": CARGO, ".cargo/config.toml": DEBIANS, **texts}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    settings = environment({"PATH": "/usr/bin:/bin", "HOME": str(folder), "CARGO_HOME": str(folder / "home")})
    for options in ([], ["--release"]):
        subprocess.run(["/usr/bin/cargo", "build", "--offline", *options], cwd=folder, env=settings, check=True, capture_output=True)
    return folder / "target"


def build_cpp(folder, source, flags):
    (folder / "program.cpp").write_text("#define NOINLINE __attribute__((noinline))\n" + source)
    run(folder, "sh", "-c", f"g++ -std=c++20 -g -pthread -o program program.cpp {flags}")


@pytest.mark.parametrize("name", some_of(CPP, 5))
def test_cpp(tmp_path, name):
    build_cpp(tmp_path, CPP[name], "-O2")
    check(tmp_path, "./program")


@pytest.mark.nightly
@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("name", CPP_LIBRARIES)
def test_cpp_libraries(tmp_path, name, level):
    flags, source = CPP_LIBRARIES[name]
    build_cpp(tmp_path, source, f"{level} {flags}")
    check(tmp_path, "./program")


@pytest.mark.parametrize("level", some_of(["-Copt-level=2", "-Copt-level=0"], 2))
@pytest.mark.parametrize("name", RUST)
def test_rust(tmp_path, name, level):
    (tmp_path / "program.rs").write_text(RUST[name])
    run(tmp_path, "/usr/bin/rustc", "--edition", "2021", "-g", level, "-o", "program", "program.rs")
    check(tmp_path, "./program")


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["debug", "release"])
@pytest.mark.parametrize("name", RUST_CRATES)
def test_rust_crates(tmp_path, crates, name, kind):
    check(tmp_path, crates / kind / name)
