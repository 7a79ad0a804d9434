//! The part of crossbeam-channel that the worker pool uses, made of loom's lock and condition: unbounded, many senders and receivers, closed for
//! either side when the other is gone.

use loom::sync::{Arc, Condvar, Mutex};
use std::collections::VecDeque;

struct State<T> {
    queue: VecDeque<T>,
    senders: usize,
    receivers: usize,
}

struct Channel<T> {
    state: Mutex<State<T>>,
    news: Condvar,
}

pub struct Sender<T>(Arc<Channel<T>>);
pub struct Receiver<T>(Arc<Channel<T>>);

#[derive(Debug)]
pub struct SendError<T>(pub T);
#[derive(Debug)]
pub struct TryRecvError;

pub fn unbounded<T>() -> (Sender<T>, Receiver<T>) {
    let state = Mutex::new(State { queue: VecDeque::new(), senders: 1, receivers: 1 });
    let channel = Arc::new(Channel { state, news: Condvar::new() });
    (Sender(channel.clone()), Receiver(channel))
}

impl<T> Sender<T> {
    pub fn send(&self, item: T) -> Result<(), SendError<T>> {
        let mut state = self.0.state.lock().unwrap();
        if state.receivers == 0 {
            return Err(SendError(item));
        }
        state.queue.push_back(item);
        drop(state);
        self.0.news.notify_one();
        Ok(())
    }
}

impl<T> Receiver<T> {
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        self.0.state.lock().unwrap().queue.pop_front().ok_or(TryRecvError)
    }
}

/// Waits for each item, until the senders are gone.
impl<T> Iterator for &Receiver<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let mut state = self.0.state.lock().unwrap();
        loop {
            if let Some(item) = state.queue.pop_front() {
                return Some(item);
            }
            if state.senders == 0 {
                return None;
            }
            state = self.0.news.wait(state).unwrap();
        }
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Sender<T> {
        self.0.state.lock().unwrap().senders += 1;
        Sender(self.0.clone())
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Receiver<T> {
        self.0.state.lock().unwrap().receivers += 1;
        Receiver(self.0.clone())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.state.lock().unwrap().senders -= 1;
        self.0.news.notify_all();
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.0.state.lock().unwrap().receivers -= 1;
    }
}
