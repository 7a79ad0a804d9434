//! Ranks of a given speed: emulated on real ranks by sleeping, and virtual time in simulation.

use std::time::Instant;

use crate::divisible::spread::Kernel;
use equipoise::error::Result;
use equipoise::node::Worker;

/// Time of each node per byte.
#[derive(Clone, Debug, PartialEq)]
pub struct Pace {
    /// Seconds per byte, by node.
    pub seconds: Vec<f64>,
    /// Whether time is virtual: then the kernel's own computing takes none.
    pub is_virtual: bool,
}

impl Pace {
    /// Stand-in for a kernel on a sample, where time is virtual: the kernel's own computing time does not matter there.
    pub fn sample(&self, node: u32) -> Option<Box<dyn Kernel>> {
        self.is_virtual.then(|| self.around(node, Box::new(Nothing)))
    }

    /// Returns a kernel that takes at least the node's time.
    pub fn around(&self, node: u32, kernel: Box<dyn Kernel>) -> Box<dyn Kernel> {
        match self.seconds.get(node as usize) {
            Some(&seconds) => Box::new(Paced { kernel, seconds, is_virtual: self.is_virtual, owed: 0.0 }),
            None => kernel,
        }
    }
}

struct Nothing;

impl Kernel for Nothing {
    fn eat(&mut self, _: &[u8], _: &mut dyn Worker) -> Result<()> {
        Ok(())
    }

    fn finish(&mut self, _: &mut dyn Worker) -> Result<Vec<u8>> {
        Ok(Vec::new())
    }
}

struct Paced {
    kernel: Box<dyn Kernel>,
    seconds: f64,
    is_virtual: bool,
    /// Seconds still to pass; negative when too many have.
    owed: f64,
}

/// Shorter sleeps are saved up.
const NAP: f64 = 0.5e-3;

impl Paced {
    fn pay(&mut self, worker: &mut dyn Worker, at_least: f64) {
        if self.owed > at_least {
            let began = Instant::now();
            worker.sleep((self.owed * 1e9) as u64);
            self.owed -= if self.is_virtual { self.owed } else { began.elapsed().as_secs_f64() };
        }
    }
}

impl Kernel for Paced {
    fn eat(&mut self, bytes: &[u8], worker: &mut dyn Worker) -> Result<()> {
        let began = Instant::now();
        self.kernel.eat(bytes, worker)?;
        self.owed += self.seconds * bytes.len() as f64;
        if !self.is_virtual {
            self.owed -= began.elapsed().as_secs_f64();
        }
        self.pay(worker, if self.is_virtual { 0.0 } else { NAP });
        Ok(())
    }

    fn finish(&mut self, worker: &mut dyn Worker) -> Result<Vec<u8>> {
        let answer = self.kernel.finish(worker);
        self.pay(worker, 0.0);
        answer
    }
}
