// SPDX-License-Identifier: MIT
// greeting_rust: does what most Rust programs do and leaves only the run-time's own blocks: prints,
// reads a line, and starts a thread. With the word "block" it leaks 777 bytes.
fn main() {
    let mut line = String::new();
    let _ = std::io::stdin().read_line(&mut line);
    println!("hello");
    let _ = std::thread::spawn(|| println!("from a thread")).join();
    if std::env::args().nth(1).as_deref() == Some("block") {
        std::mem::forget(vec![1u8; 777]);
    }
}
