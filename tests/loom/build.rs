//! Only this crate is built for loom, not what it depends on.

fn main() {
    println!("cargo::rustc-cfg=loom");
}
