/work/main/tests/miri/target/debug/deps/ffi_under_miri-e71d8dae9772f967.d: src/lib.rs src/../../../src/transport/mpi/ffi.rs src/../../../src/transport/mpi/binding/linked.rs src/../../../src/transport/mpi/outgoing.rs src/../../../src/transport/mpi/sends.rs src/../../../src/transport/mpi/pool.rs src/../../../src/memory.rs src/../../../src/transport/mpi/collectives.rs src/../../../src/transport/native.rs

/work/main/tests/miri/target/debug/deps/ffi_under_miri-e71d8dae9772f967: src/lib.rs src/../../../src/transport/mpi/ffi.rs src/../../../src/transport/mpi/binding/linked.rs src/../../../src/transport/mpi/outgoing.rs src/../../../src/transport/mpi/sends.rs src/../../../src/transport/mpi/pool.rs src/../../../src/memory.rs src/../../../src/transport/mpi/collectives.rs src/../../../src/transport/native.rs

src/lib.rs:
src/../../../src/transport/mpi/ffi.rs:
src/../../../src/transport/mpi/binding/linked.rs:
src/../../../src/transport/mpi/outgoing.rs:
src/../../../src/transport/mpi/sends.rs:
src/../../../src/transport/mpi/pool.rs:
src/../../../src/memory.rs:
src/../../../src/transport/mpi/collectives.rs:
src/../../../src/transport/native.rs:
