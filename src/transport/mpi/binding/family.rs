//! The three families of MPI, as their binary interfaces go: what handles are, which values constants have, how a status lies in memory.
//!
//! Values are those of the headers: Open MPI 4 and 5 (`mpi.h`: pointers to objects that the library exports), MPICH 3 to 5 and what is built on
//! it (Intel MPI, MVAPICH, Cray MPICH; the common ABI of 2013), and the standard ABI of MPI 5.0 (`libmpi_abi`; MPI 5.0, section 20).

use std::ffi::c_int;

/// A binary interface of MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Handles are pointers to the library's objects; a status has 24 bytes.
    OpenMpi,
    /// Handles are C ints; a status has 20 bytes.
    Mpich,
    /// Handles are pointers with fixed small values; a status has 32 bytes.
    Standard,
}

/// A constant handle: a symbol of the library, or a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Constant {
    Symbol(&'static str),
    Value(usize),
}

/// The handles that are constants.
pub struct Constants {
    pub byte: Constant,
    pub unsigned_64: Constant,
    pub sum: Constant,
    pub no_request: Constant,
    pub world: Constant,
    pub errors_return: Constant,
    pub no_info: Constant,
    pub no_comm: Constant,
}

impl Family {
    /// The family of a library: of its file's name, and of the symbols that it has.
    pub fn of(file: &str, has: impl Fn(&str) -> bool) -> Family {
        let name = file.rsplit('/').next().unwrap_or(file);
        // MPICH's own library has the functions of the standard ABI, too.
        if name.starts_with("libmpi_abi") && has("MPI_Abi_get_version") {
            Family::Standard
        } else if has("ompi_mpi_comm_world") {
            Family::OpenMpi
        } else {
            Family::Mpich
        }
    }

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Family::OpenMpi => "Open MPI's ABI",
            Family::Mpich => "MPICH's ABI",
            Family::Standard => "the standard ABI",
        }
    }

    pub fn constants(self) -> Constants {
        use Constant::{Symbol, Value};
        match self {
            Family::OpenMpi => Constants {
                byte: Symbol("ompi_mpi_uint8_t"),
                unsigned_64: Symbol("ompi_mpi_uint64_t"),
                sum: Symbol("ompi_mpi_op_sum"),
                no_request: Symbol("ompi_request_null"),
                world: Symbol("ompi_mpi_comm_world"),
                errors_return: Symbol("ompi_mpi_errors_return"),
                no_info: Symbol("ompi_mpi_info_null"),
                no_comm: Symbol("ompi_mpi_comm_null"),
            },
            // MPI_BYTE and MPI_UNSIGNED_LONG: the values of the types with a fixed width changed between MPICH 4 and 5.
            Family::Mpich => Constants {
                byte: Value(0x4c00_010d),
                unsigned_64: Value(0x4c00_0808),
                sum: Value(0x5800_0003),
                no_request: Value(0x2c00_0000),
                world: Value(0x4400_0000),
                errors_return: Value(0x5400_0001),
                no_info: Value(0x1c00_0000),
                no_comm: Value(0x0400_0000),
            },
            Family::Standard => Constants {
                byte: Value(0x241),
                unsigned_64: Value(0x259),
                sum: Value(0x21),
                no_request: Value(0x180),
                world: Value(0x101),
                errors_return: Value(0x143),
                no_info: Value(0x130),
                no_comm: Value(0x100),
            },
        }
    }

    /// Bytes of a handle.
    pub fn handle_size(self) -> usize {
        match self {
            Family::Mpich => size_of::<c_int>(),
            Family::OpenMpi | Family::Standard => size_of::<usize>(),
        }
    }

    pub fn any_source(self) -> c_int {
        if self == Family::Mpich { -2 } else { -1 }
    }

    pub fn any_tag(self) -> c_int {
        if self == Family::Standard { -2 } else { -1 }
    }

    /// `MPI_THREAD_FUNNELED`.
    pub fn funneled(self) -> c_int {
        if self == Family::Standard { 1024 } else { 1 }
    }

    /// `MPI_THREAD_SERIALIZED`.
    pub fn serialized(self) -> c_int {
        if self == Family::Standard { 2048 } else { 2 }
    }

    /// The address that stands for "no status wanted".
    pub fn ignore(self) -> usize {
        usize::from(self == Family::Mpich)
    }

    /// Number of C ints in a status.
    pub fn status_ints(self) -> usize {
        match self {
            Family::OpenMpi => 6,
            Family::Mpich => 5,
            Family::Standard => 8,
        }
    }

    /// Offset of the source in a status, in C ints; the tag follows.
    pub fn source_at(self) -> usize {
        if self == Family::Mpich { 2 } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_recognised_by_its_name_and_symbols() {
        let open = |symbol: &str| symbol == "ompi_mpi_comm_world";
        let standard = |symbol: &str| symbol == "MPI_Abi_get_version";
        assert_eq!(Family::of("libmpi.so.40", open), Family::OpenMpi);
        assert_eq!(Family::of("/opt/lib/libmpi_abi.so.1", standard), Family::Standard);
        assert_eq!(Family::of("libmpi.so.12", standard), Family::Mpich);
        assert_eq!(Family::of("/opt/libmpi_abi/libmpich.so.12", |_| false), Family::Mpich);
        // Open MPI over the standard ABI exports both.
        assert_eq!(Family::of("libmpi_abi.so", |_| true), Family::Standard);
    }
}
