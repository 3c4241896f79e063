//! Spy plots as PNG images: white paper, a frame, and ink by the logarithm of the density.

use super::bins::{Bins, Plane, fit};
use std::path::Path;
use tamis_ir::diag::{Code, Diagnostic, Result};
use tamis_tensor::io::write_file;

/// The longest side of the plot itself, in pixels.
const SIDE: usize = 1000;
/// Cells of small matrices are drawn this large at most.
const LARGEST_CELL: usize = 40;
const MARGIN: usize = 24;
const STRIP_HEIGHT: usize = 48;
const PAPER: [u8; 3] = [255, 255, 255];
const FRAME: [u8; 3] = [120, 124, 132];
/// The faintest and the darkest ink, with a step between them: light enough to rank, dark enough to
/// be seen.
const INKS: [[f64; 3]; 3] = [[158.0, 190.0, 224.0], [49.0, 104.0, 178.0], [9.0, 22.0, 63.0]];

/// A picture to be filled with entries.
pub(crate) struct Picture {
    pub(crate) bins: Bins,
    /// Pixels per bin, down and across.
    cell: (usize, usize),
}

impl Picture {
    /// An empty picture of a plane.
    pub(crate) fn new(plane: Plane) -> Picture {
        let longest = usize::try_from(plane.rows.max(plane.columns)).unwrap_or(usize::MAX);
        let (height, width, _) = fit(plane.rows as f64, plane.columns as f64, SIDE, SIDE, 16);
        let zoom = (SIDE / longest.min(SIDE)).clamp(1, LARGEST_CELL);
        let cell = if plane.strip { (STRIP_HEIGHT, zoom) } else { (zoom, zoom) };
        Picture { bins: Bins::new(&plane, height, width), cell }
    }

    /// Writes the picture to a file, which is there whole or not at all.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let bytes = self.encode().map_err(|error| {
            Diagnostic::new(Code::E0811, format!("the image cannot be encoded: {error}"))
                .in_file(path.display().to_string())
                .help("leave out --png")
        })?;
        write_file(path, &|out| out.write_all(&bytes)).map(|_| ())
    }

    /// The PNG file's bytes.
    fn encode(&self) -> std::result::Result<Vec<u8>, png::EncodingError> {
        let (width, height, pixels) = self.paint();
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, width as u32, height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&pixels)?;
        writer.finish()?;
        Ok(bytes)
    }

    fn paint(&self) -> (usize, usize, Vec<u8>) {
        let (down, across) = self.cell;
        let (inner_height, inner_width) = (self.bins.height() * down, self.bins.width() * across);
        let (height, width) = (inner_height + 2 * MARGIN, inner_width + 2 * MARGIN);
        let mut pixels: Vec<u8> = PAPER.repeat(height * width);
        let mut dot = |y: usize, x: usize, colour: [u8; 3]| {
            let at = 3 * (y * width + x);
            pixels[at..at + 3].copy_from_slice(&colour);
        };
        // The frame runs around the plot, one pixel away, so that entries at the edge stay distinct
        // from it.
        let (top, left, bottom, right) = (MARGIN - 2, MARGIN - 2, MARGIN + inner_height + 1, MARGIN + inner_width + 1);
        (left..=right).for_each(|x| [top, bottom].iter().for_each(|y| dot(*y, x, FRAME)));
        (top..=bottom).for_each(|y| [left, right].iter().for_each(|x| dot(y, *x, FRAME)));
        // Large cells are kept apart by a thin line of paper.
        let gap = |cell: usize| usize::from(cell >= 6);
        for (k, shade) in self.bins.shades().iter().enumerate().filter(|(_, shade)| **shade > 0.0) {
            let (y, x) = (MARGIN + k / self.bins.width() * down, MARGIN + k % self.bins.width() * across);
            for dy in 0..down - gap(down) {
                (0..across - gap(across)).for_each(|dx| dot(y + dy, x + dx, ink(*shade)));
            }
        }
        (width, height, pixels)
    }
}

fn ink(shade: f64) -> [u8; 3] {
    let (from, to, share) =
        if shade < 0.5 { (INKS[0], INKS[1], 2.0 * shade) } else { (INKS[1], INKS[2], 2.0 * shade - 1.0) };
    std::array::from_fn(|k| (from[k] + (to[k] - from[k]) * share).round() as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_have_paper_frame_and_ink() {
        let mut picture = Picture::new(Plane::of(&[2, 3]).unwrap());
        picture.bins.add(0, 0);
        let (width, height, pixels) = picture.paint();
        assert_eq!((width, height), (3 * LARGEST_CELL + 2 * MARGIN, 2 * LARGEST_CELL + 2 * MARGIN));
        let at = |y: usize, x: usize| <[u8; 3]>::try_from(&pixels[3 * (y * width + x)..][..3]).unwrap();
        assert_eq!(at(0, 0), PAPER);
        assert_eq!(at(MARGIN - 2, MARGIN), FRAME);
        assert_eq!(at(MARGIN, MARGIN), ink(1.0));
        assert_eq!(at(MARGIN + LARGEST_CELL, MARGIN), PAPER);
    }

    #[test]
    fn every_shape_has_a_picture_of_reasonable_size() {
        let shapes: [&[u64]; 7] =
            [&[1], &[1 << 40], &[1 << 40, 1], &[1, 1], &[5000, 77], &[799, 801], &[3, 1 << 62, 4]];
        for shape in shapes {
            let (width, height, _) = Picture::new(Plane::of(shape).unwrap()).paint();
            assert!(width.max(height) <= SIDE + 2 * MARGIN, "{shape:?}: {width} {height}");
            assert!(width.min(height) > 2 * MARGIN, "{shape:?}: {width} {height}");
        }
    }

    #[test]
    fn a_folder_that_does_not_exist() {
        let picture = Picture::new(Plane::of(&[2, 2]).unwrap());
        assert_eq!(picture.write(Path::new("no/such/folder/a.png")).unwrap_err().code, Code::E0811);
    }
}
