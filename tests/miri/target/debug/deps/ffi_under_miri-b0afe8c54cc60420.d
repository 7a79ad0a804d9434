/work/main/tests/miri/target/debug/deps/ffi_under_miri-b0afe8c54cc60420.d: src/lib.rs

/work/main/tests/miri/target/debug/deps/libffi_under_miri-b0afe8c54cc60420.rlib: src/lib.rs

/work/main/tests/miri/target/debug/deps/libffi_under_miri-b0afe8c54cc60420.rmeta: src/lib.rs

src/lib.rs:
