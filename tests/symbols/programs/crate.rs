// SPDX-License-Identifier: MIT
// Rust: functions in namespaces, generics, traits, closures, and chains of inlined library code.
use std::collections::HashMap;
use std::fmt;

struct Shape {
    name: String,
}

impl fmt::Display for Shape {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "<{}>", self.name)
    }
}

mod depot {
    #[inline(never)]
    pub fn fill<T: From<u32>>(count: u32) -> Vec<T> {
        (0..count).map(|number| T::from(number)).collect()
    }
}

fn main() {
    let mut shapes: HashMap<String, Vec<u64>> = HashMap::new();
    for (index, argument) in std::env::args().enumerate() {
        let shape = Shape { name: argument };
        shapes.insert(shape.to_string(), depot::fill(index as u32 + 10));
    }
    println!("{}", shapes.len());
}
