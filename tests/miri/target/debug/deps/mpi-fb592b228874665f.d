/work/main/tests/miri/target/debug/deps/mpi-fb592b228874665f.d: mpi/src/lib.rs

/work/main/tests/miri/target/debug/deps/libmpi-fb592b228874665f.rlib: mpi/src/lib.rs

/work/main/tests/miri/target/debug/deps/libmpi-fb592b228874665f.rmeta: mpi/src/lib.rs

mpi/src/lib.rs:
