//! The part of `std::thread` that the worker pool uses. Loom's own `unpark` also wakes a thread that waits for something else, which then fails; here a
//! thread is parked on a lock and a condition of its own, as in std: a token that `unpark` leaves is taken by the next `park`.

use loom::sync::{Arc, Condvar, Mutex};

pub use loom::thread::{Builder, JoinHandle};

#[derive(Clone)]
pub struct Thread(Arc<(Mutex<bool>, Condvar)>);

loom::thread_local! {
    static CURRENT: Thread = Thread(Arc::new((Mutex::new(false), Condvar::new())));
}

pub fn current() -> Thread {
    CURRENT.with(Thread::clone)
}

pub fn park() {
    let Thread(parked) = current();
    let (token, news) = &*parked;
    let mut token = token.lock().unwrap();
    while !*token {
        token = news.wait(token).unwrap();
    }
    *token = false;
}

impl Thread {
    pub fn unpark(&self) {
        let (token, news) = &*self.0;
        *token.lock().unwrap() = true;
        news.notify_one();
    }

    pub fn name(&self) -> Option<&str> {
        None
    }
}
