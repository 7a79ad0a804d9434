//! Moves everything that has an operation going on, drops it before and after its end, and lets Miri see whether that is allowed.

#![cfg(test)]
#![allow(unexpected_cfgs, unused_unsafe)]

#[allow(dead_code)]
#[path = "../../../src/transport/mpi/abandoned.rs"]
mod abandoned;
#[path = "../../../src/transport/mpi/ffi.rs"]
mod ffi;

#[allow(dead_code, unused_imports)]
#[path = "../../../src/transport/mpi/binding/linked.rs"]
mod binding;

#[path = "../../../src/transport/mpi/outgoing.rs"]
mod outgoing;

#[allow(dead_code)]
#[path = "../../../src/transport/mpi/sends.rs"]
mod sends;

#[path = "../../../src/transport/mpi/pool.rs"]
mod pool;

#[allow(dead_code)]
#[path = "../../../src/memory.rs"]
mod memory;

#[allow(dead_code)]
#[path = "../../../src/transport/mpi/collectives.rs"]
mod collectives;

#[allow(dead_code)]
#[path = "../../../src/transport/native.rs"]
mod native;

mod transport {
    pub(crate) use crate::native;
}

mod error {
    #[derive(Debug)]
    #[allow(dead_code)]
    pub enum Error {
        Failed(String),
        Mpi { call: String, why: String },
    }

    pub type Result<T> = std::result::Result<T, Error>;
}

mod topology {
    /// As the library's, as far as these files use it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct RankId(u32);

    #[allow(dead_code)]
    impl RankId {
        pub const FIRST: RankId = RankId(0);

        pub fn new(number: u32) -> RankId {
            RankId(number)
        }

        pub fn get(self) -> u32 {
            self.0
        }

        pub fn all(count: u32) -> impl Iterator<Item = RankId> {
            (0..count).map(RankId)
        }
    }
}

use std::collections::VecDeque;

use bytes::Bytes;
use collectives::Collectives;
use ffi::{Comm, Letter, Mailbox, Outgoing};
use mpi::ffi::pass_time;
use pool::Pool;
use sends::Sends;
use topology::RankId;
use transport::native::{Collected, Collective};

fn comm() -> Comm {
    Comm::duplicate(ffi::world()).unwrap()
}

#[test]
fn operations_move_while_they_go_on() {
    let comm = comm();
    let mut all = Collectives::default();
    all.open(&comm).unwrap();
    let mut ids = Vec::new();
    for round in 0..5u8 {
        let bytes = vec![round; 40];
        ids.push(all.begin((1, 0), vec![RankId::FIRST], Collective::AllGather { lengths: vec![bytes.len()], mine: bytes }).unwrap());
        ids.push(all.begin((1, 0), vec![RankId::FIRST], Collective::Sum(vec![7, round.into()])).unwrap());
        ids.push(all.begin((1, 0), vec![RankId::FIRST], Collective::SumBefore(vec![9])).unwrap());
        // The list grows and shrinks meanwhile.
        all.poll(|_, _| ()).unwrap();
        let moved = Box::new(all);
        all = *moved;
    }
    for _ in 0..10 {
        all.poll(|_, _| ()).unwrap();
    }
    assert!(all.is_idle());
    for (at, id) in ids.into_iter().enumerate() {
        let round = (at / 3) as u8;
        match all.take(id) {
            Some(Collected::Bytes(bytes)) => assert_eq!(bytes, [round; 40]),
            Some(Collected::Numbers(numbers)) if at % 3 == 1 => assert_eq!(numbers, [7, round.into()]),
            other => assert!(matches!(&other, Some(Collected::Numbers(numbers)) if *numbers == [0]), "{other:?}"),
        }
    }
    // Dropped before it is over, and over afterwards.
    all.begin((1, 0), vec![RankId::FIRST], Collective::Sum(vec![1])).unwrap();
    drop(all);
    (0..5).for_each(|_| pass_time());
}

#[test]
fn a_sum_moves_while_it_is_made() {
    let comm = comm();
    let summing = comm.sum_for_me(vec![42]).unwrap();
    // Into an option, a list, and out again, as it goes through functions.
    let mut list = vec![Some(summing)];
    let mut summing = list.pop().flatten().unwrap();
    let mut result = None;
    for _ in 0..10 {
        result = result.or(summing.result().unwrap());
        let moved = Box::new(summing);
        summing = *moved;
    }
    assert_eq!(result, Some(42));
}

fn next(mailbox: &mut Mailbox, comm: &Comm) -> Letter {
    (0..100).find_map(|_| mailbox.poll(comm).unwrap()).expect("a letter")
}

#[test]
fn messages_arrive_in_order_and_their_buffers_are_used_again() {
    let comm = comm();
    let mut mailbox = Mailbox::open(&comm, 64).unwrap();
    let mut sends = Sends::default();
    let mut spare: Vec<Vec<u8>> = Vec::new();
    for round in 0..4u8 {
        for length in [0, 3, 60] {
            let mut own = spare.pop().unwrap_or_default();
            own.clear();
            own.resize(length, round);
            assert!(sends.start(&comm, RankId::FIRST, i32::from(round), Outgoing::Own(own)).unwrap().is_none());
        }
        let shared = Bytes::from(vec![round; 40]).slice(10..20);
        sends.start(&comm, RankId::FIRST, i32::from(round), Outgoing::Shared(shared)).unwrap();
        let (mut moved, mut kept) = (mailbox, Vec::new());
        for length in [0, 3, 60, 10] {
            let letter = next(&mut moved, &comm);
            assert_eq!((letter.tag, letter.source, &letter.bytes[..]), (i32::from(round), RankId::FIRST, &vec![round; length][..]));
            kept.push(letter.bytes);
        }
        mailbox = moved;
        sends
            .collect(|over| {
                if let Outgoing::Own(buffer) = over {
                    spare.push(buffer);
                }
            })
            .unwrap();
    }
    assert_eq!(sends.len(), 0);
    assert_eq!(comm.all_gather(&[1, 2, 3]).unwrap(), [1, 2, 3]);
    mailbox.close().unwrap();
    comm.free().unwrap();
}

#[test]
fn bodies_come_in_pieces_while_they_move() {
    let comm = comm();
    let bulk = comm.another().unwrap();
    let mut mailbox = Mailbox::open(&comm, 16).unwrap();
    let pool = Pool::new(1 << 16);
    let mut sends = Sends::default();
    let whole: Vec<u8> = (0..100).collect();
    let mut queue = VecDeque::new();
    for front in [0, 7, 100] {
        let mut receiving = bulk.receive_pieces(&pool, RankId::FIRST, 4, 100, &whole[..front], 33).unwrap();
        assert_eq!(receiving.is_complete().unwrap(), front == 100);
        queue.push_back((front, receiving));
        let rest = Bytes::from(whole.clone());
        for piece in rest.slice(front..).chunks(33) {
            sends.start(&bulk, RankId::FIRST, 4, Outgoing::Shared(rest.slice_ref(piece))).unwrap();
        }
    }
    for (front, mut receiving) in queue {
        let mut looks = 0..100;
        while !receiving.is_complete().unwrap() {
            assert!(looks.next().is_some(), "the body never comes");
            let mut awaited = [(RankId::FIRST, receiving.awaited())];
            assert!(mailbox.look_with(&comm, &mut awaited).unwrap().is_none());
            let [(_, awaited)] = awaited;
            receiving.note(awaited);
        }
        let body = receiving.into_bytes(&pool);
        assert_eq!(body, whole);
        assert_eq!(body[front..].as_ptr() as usize % 64, 0, "what comes in pieces is aligned, whatever is ahead of it");
    }
}

#[test]
fn what_is_dropped_before_its_end_is_still_written_and_read() {
    let comm = comm();
    let bulk = comm.another().unwrap();
    drop(comm.sum_for_me(vec![1]).unwrap());
    drop(Mailbox::open(&comm, 16).unwrap());
    drop(bulk.receive_pieces(&Pool::new(0), RankId::FIRST, 4, 10, &[1, 2], 4).unwrap());
    let mut sends = Sends::default();
    sends.start(&comm, RankId::FIRST, 1, Outgoing::Own(vec![9; 16])).unwrap();
    sends.start(&bulk, RankId::FIRST, 4, Outgoing::Shared(Bytes::from(vec![8; 4]))).unwrap();
    drop(sends);
    pass_time();
}
