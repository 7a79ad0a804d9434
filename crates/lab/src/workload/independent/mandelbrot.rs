//! A picture of the Mandelbrot set; a task is a row. Rows through the set take hundreds of times as long as those outside it.

use std::io::Write;
use std::path::Path;

use bytes::{Buf, Bytes};
use serde::{Deserialize, Serialize};

use super::computed::Kernel;
use super::{Entry, Facts, Make, Plan};
use crate::whole_file::WholeFile;
use equipoise::error::{Error, Result};
use equipoise::names;
use equipoise::node::Worker;
use equipoise::spec::{InvalidSpec, Options};

pub const ENTRY: Entry = Entry {
    name: "mandelbrot",
    title: "a picture of the Mandelbrot set, row by row",
    source: "Mandelbrot 1980",
    options: "width=640, height=480, limit=1000 (iterations of a point), x=-0.5, y=0 (the centre; below 0 as given), span=3 (of the width), \
              picture=FILE.pgm (written at the end)",
    examples: &["mandelbrot:width=32,height=24,limit=100"],
    build,
    facts: Facts { answer: "iterations" },
};

/// Time of an iteration in simulation, in nanoseconds.
pub(super) const ITERATION: f64 = 2.0;
/// Points of the largest picture.
const MOST_POINTS: u64 = 1 << 28;

/// Section of the plane and size of the picture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Picture {
    pub width: u32,
    pub height: u32,
    /// Maximum number of iterations of a point.
    pub limit: u32,
    /// The centre, and how wide the picture is, in the plane of complex numbers.
    pub centre: (f64, f64),
    pub span: f64,
}

fn build(options: &mut Options<'_>) -> Result<Make, InvalidSpec> {
    let width = options.within("width", 1..=65_536u64)?.unwrap_or(640);
    let height = options.within("height", 1..=65_536u64)?.unwrap_or(480);
    if width * height > MOST_POINTS {
        return Err(options.conflict(format!("width and height: a picture has at most {MOST_POINTS} points")));
    }
    let limit = options.within("limit", 1..=u64::from(u32::MAX))?.unwrap_or(1000);
    let x = options.real("x", -1e3..=1e3)?.unwrap_or(-0.5);
    let y = options.real("y", -1e3..=1e3)?.unwrap_or(0.0);
    let span = options.positive("span")?.unwrap_or(3.0);
    let file = options.value("picture")?.map(names::path);
    if file.as_ref().is_some_and(|file| file.as_os_str().is_empty()) {
        return Err(options.conflict("picture needs a value, the name of a file"));
    }
    let picture = Picture { width: width as u32, height: height as u32, limit: limit as u32, centre: (x, y), span };
    let (drawn, to) = (picture.clone(), file.clone());
    let mut make = Make::computing(options, ITERATION, move |_| {
        // Said before anything is computed.
        let refused = |file: &Path, why| {
            Error::input("workload", format!(" mandelbrot: picture={}: it cannot be written: {why}", names::shown(file)))
        };
        to.as_deref().map_or(Ok(()), |file| WholeFile::create(file).map(|_| ()).map_err(|why| refused(file, why)))?;
        Ok(Plan::Mandelbrot(picture.clone()))
    });
    make.accept = Some(Box::new(move |products| drawn.accept(products, file.as_deref())));
    Ok(make)
}

impl Picture {
    /// Computes the numbers of iterations of the points of a row: until they are farther than 2 from 0, or the limit.
    fn row(&self, row: u32, worker: &mut dyn Worker) -> Vec<u32> {
        let step = self.span / f64::from(self.width);
        let place = |at: u32, of: u32| (f64::from(at) + 0.5 - f64::from(of) / 2.0) * step;
        let im = self.centre.1 - place(row, self.height);
        let point = |column: u32| {
            let re = self.centre.0 + place(column, self.width);
            let (mut x, mut y, mut count) = (0.0f64, 0.0f64, 0);
            while count < self.limit && x * x + y * y <= 4.0 {
                (x, y) = (x * x - y * y + re, 2.0 * x * y + im);
                count += 1;
            }
            count
        };
        (0..self.width)
            .map(|column| {
                worker.checkpoint();
                point(column)
            })
            .collect()
    }

    /// Checks that every row came back, and writes the picture.
    fn accept(&self, products: &[(usize, Bytes)], file: Option<&Path>) -> Result<()> {
        let whole = products.len() == self.height as usize
            && products.iter().enumerate().all(|(row, (task, product))| *task == row && product.len() == 4 * self.width as usize);
        if !whole {
            return Err(Error::wrong_result(format!(
                "{} rows of the picture came back, or parts of some; it has {}",
                products.len(),
                self.height
            )));
        }
        let Some(file) = file else { return Ok(()) };
        let failed = |why: std::io::Error| Error::Failed(format!("workload mandelbrot: picture={}: {why}", names::shown(file)));
        WholeFile::put(file, |out| self.draw(products, out)).map_err(failed)
    }

    /// Writes the picture in grey, a byte for each point (portable graymap).
    fn draw(&self, products: &[(usize, Bytes)], out: &mut dyn Write) -> std::io::Result<()> {
        write!(out, "P5\n{} {}\n255\n", self.width, self.height)?;
        let whole = f64::from(self.limit).ln_1p();
        for (_, product) in products {
            let mut row = product.clone();
            while row.remaining() >= 4 {
                let count = row.get_u32_le();
                let grey = if count == self.limit { 0.0 } else { 255.0 * (f64::from(count).ln_1p() / whole) };
                out.write_all(&[grey as u8])?;
            }
        }
        Ok(())
    }
}

impl Picture {
    /// Number of iterations of a point, where that is known without iterating: in the main cardioid and in the disc to its left, whose points
    /// never leave, all that are allowed; farther than 2 from 0, the first. `None` elsewhere, and so near to the border of these that rounding
    /// might decide.
    fn known(&self, re: f64, im: f64) -> Option<u32> {
        const MARGIN: f64 = 1e-9;
        let q = (re - 0.25).powi(2) + im * im;
        let in_cardioid = q * (q + re - 0.25) < 0.25 * im * im - MARGIN;
        let in_disc = (re + 1.0).powi(2) + im * im < 1.0 / 16.0 - MARGIN;
        if in_cardioid || in_disc {
            return Some(self.limit);
        }
        (re * re + im * im > 4.0 + MARGIN).then_some(1)
    }
}

impl Kernel for Picture {
    fn tasks(&self) -> usize {
        self.height as usize
    }

    fn compute(&self, task: usize, worker: &mut dyn Worker, product: &mut Vec<u8>) -> (u64, u64) {
        let counts = self.row(task as u32, worker);
        let sum = counts.iter().map(|count| u64::from(*count)).sum();
        counts.iter().for_each(|count| product.extend_from_slice(&count.to_le_bytes()));
        (sum, sum)
    }

    fn check(&self, task: usize, product: &[u8]) -> Result<(), String> {
        let step = self.span / f64::from(self.width);
        let im = self.centre.1 + (f64::from(self.height) / 2.0 - task as f64 - 0.5) * step;
        for (column, count) in product.chunks_exact(4).enumerate() {
            let re = self.centre.0 + (column as f64 + 0.5 - f64::from(self.width) / 2.0) * step;
            let count = u32::from_le_bytes([count[0], count[1], count[2], count[3]]);
            if let Some(known) = self.known(re, im).filter(|known| *known != count) {
                return Err(format!("the point {re}, {im} took {count} iterations and should take {known}"));
            }
        }
        Ok(())
    }
}
