//! Gives the shared library its name: programs that link it ask for version 1.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libequipoise.so.1");
}
