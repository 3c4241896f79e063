//! Image case studies: erosion of binary images, and masked histograms of grey images, stored as
//! bytes, runs, repeated rows, and words.

use super::interleaved::TimingOptions;
use super::load::rendered;
use tamis::io::{ReadOptions, read};
use tamis::prelude::*;
use tamis::tensor::{IndexArray, LevelArrays};

const BYTES: &str = include_str!("../../../examples/erosion.py");
const RUNS: &str = include_str!("../../../examples/erosion_runs.py");
const ROWS: &str = include_str!("../../../examples/erosion_rows.py");
const WORDS: &str = include_str!("../../../examples/erosion_words.py");
const HISTOGRAM: &str = include_str!("../../../examples/histogram_runs.py");

/// Bytes in row-major order.
struct GreyImage {
    rows: usize,
    columns: usize,
    pixels: Vec<u8>,
}

/// An image in row-major order; the images of a stack are concatenated vertically. Binary pixels
/// are 0 and 255.
fn load(path: &str) -> Result<GreyImage, String> {
    let tensor = rendered(read(path, &ReadOptions::default()))?;
    let (columns, pixels) = (tensor.shape().last().copied().unwrap_or(1) as usize, rendered(tensor.to_dense())?);
    let pixels: Vec<u8> = match &pixels {
        ValueArray::Bool(pixels) => pixels.iter().map(|p| if *p != u8::from(false) { 255 } else { 0 }).collect(),
        ValueArray::U8(pixels) => pixels.to_vec(),
        other => return Err(format!("{path} has {} pixels, not bytes", other.dtype())),
    };
    Ok(GreyImage { rows: pixels.len() / columns.max(1), columns, pixels })
}

impl GreyImage {
    fn row(&self, y: usize) -> &[u8] {
        &self.pixels[y * self.columns..(y + 1) * self.columns]
    }

    /// Magnifies each pixel to a square.
    fn magnified(&self, scale: usize) -> GreyImage {
        let mut pixels = Vec::with_capacity(self.pixels.len() * scale * scale);
        for y in 0..self.rows {
            let wide: Vec<u8> = self.row(y).iter().flat_map(|p| std::iter::repeat_n(*p, scale)).collect();
            (0..scale).for_each(|_| pixels.extend_from_slice(&wide));
        }
        GreyImage { rows: self.rows * scale, columns: self.columns * scale, pixels }
    }

    /// The starts and values of the runs in a row, optionally without those of value 0.
    fn runs(&self, y: usize, binary: bool) -> Vec<(u32, u32, u8)> {
        let value = |p: u8| if binary { u8::from(p >= 128) } else { p };
        let mut runs: Vec<(u32, u32, u8)> = Vec::new();
        for (x, p) in self.row(y).iter().enumerate() {
            match runs.last_mut() {
                Some(last) if last.2 == value(*p) => last.1 = x as u32 + 1,
                _ => runs.push((x as u32, x as u32 + 1, value(*p))),
            }
        }
        if binary {
            runs.retain(|run| run.2 != 0);
        }
        runs
    }

    fn shape(&self, scale: usize) -> [u64; 2] {
        [(self.rows * scale) as u64, (self.columns * scale) as u64]
    }

    /// `dense, sparse_runs; pattern` of the magnified image, and the same with equal rows once,
    /// `runs, sparse_runs; pattern`.
    fn binary(&self, scale: usize, rows_once: bool) -> Result<Tensor, String> {
        let (mut ends, mut pos, mut start, mut end) = (Vec::new(), vec![0u32], Vec::<u32>::new(), Vec::<u32>::new());
        let mut last: Option<Vec<(u32, u32, u8)>> = None;
        for y in 0..self.rows {
            let runs = self.runs(y, true);
            let below = ((y + 1) * scale) as u32;
            if rows_once && last.as_ref() == Some(&runs) {
                ends.pop();
                ends.push(below);
                continue;
            }
            for _ in 0..if rows_once { 1 } else { scale } {
                start.extend(runs.iter().map(|run| run.0 * scale as u32));
                end.extend(runs.iter().map(|run| run.1 * scale as u32));
                pos.push(start.len() as u32);
            }
            ends.push(below);
            last = Some(runs);
        }
        let outer = if rows_once {
            let pos: IndexArray = vec![0u32, ends.len() as u32].into();
            LevelArrays::new([("pos", pos), ("end", ends.into())])
        } else {
            LevelArrays::default()
        };
        let inner = LevelArrays::new([("pos", IndexArray::from(pos)), ("start", start.into()), ("end", end.into())]);
        let format = if rows_once { "runs, sparse_runs; pattern" } else { "dense, sparse_runs; pattern" };
        let format = rendered(Format::parse(format, 2))?;
        rendered(Tensor::from_parts(&self.shape(scale), &format, vec![outer, inner], None, Value::Bool(false)))
    }

    /// `dense, runs` of the magnified image: bytes.
    fn grey(&self, scale: usize) -> Result<Tensor, String> {
        let (mut pos, mut end, mut values) = (vec![0u32], Vec::<u32>::new(), Vec::<u8>::new());
        for y in 0..self.rows {
            let runs = self.runs(y, false);
            for _ in 0..scale {
                end.extend(runs.iter().map(|run| run.1 * scale as u32));
                values.extend(runs.iter().map(|run| run.2));
                pos.push(end.len() as u32);
            }
        }
        let inner = LevelArrays::new([("pos", IndexArray::from(pos)), ("end", end.into())]);
        let format = rendered(Format::parse("dense, runs", 2))?;
        let levels = vec![LevelArrays::default(), inner];
        rendered(Tensor::from_parts(&self.shape(scale), &format, levels, Some(values.into()), Value::U8(0)))
    }

    /// Words of 64 pixels; missing pixels of the last word of a row are set.
    fn words(&self) -> Result<Tensor, String> {
        let width = self.columns.div_ceil(64);
        let mut words = vec![u64::MAX; self.rows * width];
        for y in 0..self.rows {
            for (x, p) in self.row(y).iter().enumerate() {
                words[y * width + x / 64] ^= u64::from(*p < 128) << (x % 64);
            }
        }
        rendered(Tensor::from_dense(&[self.rows as u64, width as u64], words.into(), &Format::dense(2), Value::U64(0)))
    }

    fn bytes(&self, binary: bool) -> Result<Tensor, String> {
        let shape = self.shape(1);
        if binary {
            let pixels: Vec<bool> = self.pixels.iter().map(|p| *p >= 128).collect();
            return rendered(Tensor::from_dense(&shape, pixels.into(), &Format::dense(2), Value::Bool(false)));
        }
        rendered(Tensor::from_dense(&shape, self.pixels.clone().into(), &Format::dense(2), Value::U8(0)))
    }
}

/// A program with its tensors.
#[derive(Debug)]
struct ImageTask {
    variant: &'static str,
    program: Executable,
    tensors: Vec<Tensor>,
}

/// An image, with all variants of its erosion or histogram.
#[derive(Debug, Default)]
pub struct Image {
    columns: usize,
    rows: usize,
    tasks: Vec<ImageTask>,
    result: Option<(&'static str, Tensor)>,
}

impl Image {
    /// Reads a binary image, magnifies it, and compiles all variants of its erosion. Returns the
    /// name, rows, columns, and memory of each variant.
    pub fn to_erode(path: &str, scale: usize) -> Result<Image, String> {
        let image = load(path)?;
        let large = image.magnified(scale);
        let inputs = [
            ("bytes", BYTES, large.bytes(true)?),
            ("words", WORDS, large.words()?),
            ("runs", RUNS, image.binary(scale, false)?),
            ("rows", ROWS, image.binary(scale, true)?),
        ];
        let mut tasks = Vec::new();
        for (variant, text, tensor) in inputs {
            tasks.push(ImageTask::new(variant, text, vec![tensor])?);
        }
        Ok(Image { rows: large.rows, columns: large.columns, tasks, result: None })
    }

    /// Reads a grey image and a mask, which is magnified over the columns and over each `tile` of
    /// rows, magnifies both, and compiles all variants of the histogram.
    pub fn to_count(path: &str, mask: &str, tile: usize, scale: usize) -> Result<Image, String> {
        let (image, mask) = (load(path)?, load(mask)?);
        let mut pixels = Vec::with_capacity(image.pixels.len());
        for y in 0..image.rows {
            let row = mask.row((y % tile.max(1)) * mask.rows / tile.max(1));
            pixels.extend((0..image.columns).map(|x| row[x * mask.columns / image.columns]));
        }
        let mask = GreyImage { pixels, ..image };
        let image = load(path)?;
        let (large, large_mask) = (image.magnified(scale), mask.magnified(scale));
        let inputs = [
            ("bytes", [large.bytes(false)?, large_mask.bytes(true)?]),
            ("mask", [large.bytes(false)?, mask.binary(scale, false)?]),
            ("runs", [image.grey(scale)?, mask.binary(scale, false)?]),
        ];
        let mut tasks = Vec::new();
        for (variant, tensors) in inputs {
            tasks.push(ImageTask::new(variant, HISTOGRAM, tensors.to_vec())?);
        }
        Ok(Image { rows: large.rows, columns: large.columns, tasks, result: None })
    }

    /// Rows, columns, and the bytes that each variant reads.
    pub fn describe(&self) -> String {
        let sizes: Vec<String> = self.tasks.iter().map(|task| format!("{}={}", task.variant, task.bytes())).collect();
        format!("{} {} {}", self.rows, self.columns, sizes.join(" "))
    }

    /// Runs a variant; returns the seconds.
    pub fn run(&mut self, variant: &str, clock: TimingOptions) -> Result<f64, String> {
        let task = self
            .tasks
            .iter()
            .find(|task| task.variant == variant)
            .ok_or_else(|| format!("unknown variant `{variant}`"))?;
        // The last result is freed first, since the other side reuses its result.
        self.result = None;
        let tensors: Vec<&Tensor> = task.tensors.iter().collect();
        let mut results = Results::default();
        let seconds = clock.time(|| {
            results = task.program.call(&tensors).map_err(|d| d.render(false))?;
            Ok(())
        })?;
        self.result = results.into_tensor().ok().map(|tensor| (task.variant, tensor));
        Ok(seconds)
    }

    /// The last result: pixels for images, counts for histograms.
    pub fn result(&self) -> Result<Tensor, String> {
        let (variant, result) = self.result.as_ref().ok_or("nothing was run")?;
        if *variant != "words" {
            return rendered(result.convert(&Format::dense(result.rank())));
        }
        let Some(ValueArray::U64(words)) = result.values() else { return Err("words have 64 bits".into()) };
        let width = self.columns.div_ceil(64).max(1);
        let pixels: Vec<bool> = words
            .chunks_exact(width)
            .flat_map(|row| (0..self.columns).map(move |x| (row[x / 64] >> (x % 64)) & 1 == 1))
            .collect();
        let shape = [self.rows as u64, self.columns as u64];
        rendered(Tensor::from_dense(&shape, pixels.into(), &Format::dense(2), Value::Bool(false)))
    }
}

impl ImageTask {
    fn new(variant: &'static str, text: &str, tensors: Vec<Tensor>) -> Result<ImageTask, String> {
        let render = |d: Diagnostics| format!("{variant}: {}", d.render(false));
        let program = Program::parse(text).map_err(render)?;
        let references: Vec<&Tensor> = tensors.iter().collect();
        let program =
            tamis::compile(&program, &Signature::of(&references), &CompileOptions::default()).map_err(render)?;
        Ok(ImageTask { variant, program, tensors })
    }

    fn bytes(&self) -> usize {
        self.tensors.iter().map(Tensor::nbytes).sum()
    }
}
