// SPDX-License-Identifier: MIT
// traits: Rust stacks: a trait object, a closure, a generic, a thread. Chosen points as in calls.c.
use std::alloc::{alloc, Layout};

#[no_mangle]
#[inline(never)]
pub extern "C" fn chosen_point(size: usize) -> *mut u8 {
    let block = unsafe { alloc(Layout::from_size_align(size, 1).unwrap()) };
    unsafe { block.write(1) };
    block
}

trait Shape {
    fn draw(&self) -> usize;
}

struct Square;

impl Shape for Square {
    #[inline(never)]
    fn draw(&self) -> usize {
        chosen_point(7201) as usize
    }
}

#[inline(never)]
fn generic<T: Into<usize>>(value: T) -> usize {
    chosen_point(value.into()) as usize
}

mod inside {
    #[inline(never)]
    pub fn module_function(call: &dyn Fn() -> usize) -> usize {
        call() + 1
    }
}

fn main() {
    let shapes: Vec<Box<dyn Shape>> = vec![Box::new(Square)];
    let mut sum = shapes[0].draw();
    sum = sum.wrapping_add(generic(7202u16));
    sum = sum.wrapping_add(inside::module_function(&|| chosen_point(7203) as usize));
    let thread = std::thread::spawn(|| chosen_point(7204) as usize);
    sum = sum.wrapping_add(thread.join().unwrap());
    std::process::exit(if sum == 0 { 1 } else { 0 });
}
