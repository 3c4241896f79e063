//! Spy plots as lines of text: blocks for small matrices, braille dots for others, letters where
//! there is only ASCII.

use super::bins::{Bins, Plane, fit};

/// The largest plot, in characters.
const WIDTH: usize = 60;
const HEIGHT: usize = 30;
/// A braille character holds two columns of four dots.
const DOTS: (usize, usize) = (4, 2);
/// From light to dark.
const LETTERS: &[u8] = b" .:+*#@";
const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The style of a drawn plane.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Style {
    /// Two characters for each cell of a small matrix.
    Cells,
    /// One character for two cells, one above the other.
    HalfBlocks,
    /// A dot for each bin.
    Braille,
    /// A letter for each bin.
    Letters,
    /// One line for a vector.
    Strip,
}

/// A plot to be filled with entries and drawn.
pub(crate) struct Plot {
    plane: Plane,
    style: Style,
    to_scale: bool,
    unicode: bool,
    pub(crate) bins: Bins,
}

impl Plot {
    /// An empty plot of a plane.
    pub(crate) fn new(plane: Plane, unicode: bool) -> Plot {
        let within = |rows: u64, columns: u64| plane.rows <= rows && plane.columns <= columns;
        let style = match unicode {
            _ if plane.strip => Style::Strip,
            _ if within(HEIGHT as u64, WIDTH as u64 / 2) => Style::Cells,
            true if within(2 * HEIGHT as u64, WIDTH as u64) => Style::HalfBlocks,
            true => Style::Braille,
            false => Style::Letters,
        };
        let (rows, columns) = (plane.rows as f64, plane.columns as f64);
        let (height, width, to_scale) = match style {
            Style::Cells | Style::HalfBlocks => (plane.rows as usize, plane.columns as usize, true),
            Style::Braille => fit(rows, columns, HEIGHT * DOTS.0, WIDTH * DOTS.1, 4),
            // A character is about twice as high as it is wide.
            Style::Letters => fit((rows / 2.0).max(1.0), columns, HEIGHT, WIDTH, 2),
            Style::Strip => (1, WIDTH, true),
        };
        Plot { plane, style, to_scale, unicode, bins: Bins::new(&plane, height, width) }
    }

    /// The plot with its frame and a caption, line by line.
    pub(crate) fn lines(&self) -> Vec<String> {
        let inner = match self.style {
            Style::Cells => self.cells(),
            Style::HalfBlocks => self.half_blocks(),
            Style::Braille => self.braille(),
            Style::Letters => self.letters(),
            Style::Strip => vec![self.strip()],
        };
        let width = inner.iter().map(|line| line.chars().count()).max().unwrap_or(0);
        let [top_left, top_right, bottom_left, bottom_right, across, down] =
            if self.unicode { ['┌', '┐', '└', '┘', '─', '│'] } else { ['+', '+', '+', '+', '-', '|'] };
        let edge: String = std::iter::repeat_n(across, width).collect();
        let mut lines = vec![format!("{top_left}{edge}{top_right}")];
        lines.extend(inner.iter().map(|line| format!("{down}{line:width$}{down}")));
        lines.push(format!("{bottom_left}{edge}{bottom_right}"));
        lines.push(self.caption());
        lines
    }

    fn caption(&self) -> String {
        let (rows, columns) = self.bins.cell_size();
        let size = |x: f64| if x < 10.0 && x.fract() > 0.05 { format!("{x:.1}") } else { format!("{x:.0}") };
        let what = match self.style {
            Style::Braille => "dot",
            _ => "character",
        };
        let mut parts = Vec::new();
        if self.plane.strip && columns > 1.0 {
            parts.push(format!("each character stands for {} cells, filled by their share of entries", size(columns)));
        } else if rows > 1.0 || columns > 1.0 {
            let most = self.bins.most();
            parts.push(format!(
                "each {what} stands for {} x {} cells with at most {most} entries",
                size(rows),
                size(columns)
            ));
        }
        if !self.to_scale {
            parts.push("not to scale".to_string());
        }
        match self.plane.hidden {
            0 => {}
            1 => parts.push("projected onto the first two of 3 dimensions".to_string()),
            n => parts.push(format!("projected onto the first two of {} dimensions", n + 2)),
        }
        if parts.is_empty() { "each block is an entry".to_string() } else { parts.join("; ") }
    }

    fn any(&self, row: usize, column: usize) -> bool {
        row < self.bins.height() && self.bins.density(row, column) > 0.0
    }

    fn cells(&self) -> Vec<String> {
        let [full, empty] = if self.unicode { ["██", "· "] } else { ["##", ". "] };
        let row = |row| (0..self.bins.width()).map(|column| if self.any(row, column) { full } else { empty }).collect();
        (0..self.bins.height()).map(row).collect()
    }

    fn half_blocks(&self) -> Vec<String> {
        let block = |row, column| match (self.any(row, column), self.any(row + 1, column)) {
            (false, false) => ' ',
            (true, false) => '▀',
            (false, true) => '▄',
            (true, true) => '█',
        };
        let rows = (0..self.bins.height()).step_by(2);
        rows.map(|row| (0..self.bins.width()).map(|column| block(row, column)).collect()).collect()
    }

    /// Dots are dithered: a dark region shows all its dots, a light one some of them. A character
    /// whose dots would all be left out shows its darkest one, so that nothing stored is invisible.
    fn braille(&self) -> Vec<String> {
        let (height, width) = (self.bins.height(), self.bins.width());
        let shades = self.bins.shades();
        let character = |top: usize, left: usize| {
            let (mut bits, mut darkest, mut darkest_bit) = (0u32, 0.0, 0u32);
            for row in top..(top + DOTS.0).min(height) {
                for column in left..(left + DOTS.1).min(width) {
                    let (shade, bit) = (shades[row * width + column], braille_bit(row - top, column - left));
                    if shade > threshold(row, column) {
                        bits |= bit;
                    }
                    if shade > darkest {
                        (darkest, darkest_bit) = (shade, bit);
                    }
                }
            }
            let bits = if bits == 0 { darkest_bit } else { bits };
            char::from_u32(0x2800 + bits).unwrap_or(' ')
        };
        let rows = (0..height).step_by(DOTS.0);
        rows.map(|top| (0..width).step_by(DOTS.1).map(|left| character(top, left)).collect()).collect()
    }

    fn letters(&self) -> Vec<String> {
        let letter = |shade: &f64| {
            // The lightest letter is for nothing at all.
            let step = if *shade > 0.0 { 1 + (shade * (LETTERS.len() - 2) as f64).round() as usize } else { 0 };
            char::from(LETTERS[step.min(LETTERS.len() - 1)])
        };
        self.bins.shades().chunks(self.bins.width()).map(|row| row.iter().map(letter).collect()).collect()
    }

    fn strip(&self) -> String {
        let character = |column| {
            let share = self.bins.density(0, column).min(1.0);
            let step = |steps: usize| (share * steps as f64).ceil() as usize;
            if self.unicode { BARS[step(BARS.len() - 1)] } else { char::from(LETTERS[step(LETTERS.len() - 1)]) }
        };
        (0..self.bins.width()).map(character).collect()
    }
}

/// The bit of a dot in Unicode's block of braille patterns, whose fourth row was added later.
fn braille_bit(row: usize, column: usize) -> u32 {
    const BITS: [[u32; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];
    BITS[row][column]
}

/// Ordered dithering; shades above 0.75 are always shown.
fn threshold(row: usize, column: usize) -> f64 {
    const ORDER: [[u8; 4]; 4] = [[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]];
    f64::from(ORDER[row % 4][column % 4]) / 16.0 * 0.8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(shape: &[u64], entries: &[(u64, u64)], unicode: bool) -> String {
        let mut plot = Plot::new(Plane::of(shape).unwrap(), unicode);
        entries.iter().for_each(|(i, j)| plot.bins.add(*i, *j));
        plot.lines().join("\n")
    }

    #[test]
    fn small_matrices_show_each_cell() {
        let drawn = plot(&[3, 4], &[(0, 0), (0, 3), (2, 0)], true);
        assert_eq!(drawn, "┌────────┐\n│██· · ██│\n│· · · · │\n│██· · · │\n└────────┘\neach block is an entry");
        let drawn = plot(&[2, 2], &[(1, 0)], false);
        assert_eq!(drawn, "+----+\n|. . |\n|##. |\n+----+\neach block is an entry");
    }

    #[test]
    fn vectors_are_strips() {
        assert_eq!(plot(&[5], &[(0, 1), (0, 4)], true), "┌─────┐\n│ █  █│\n└─────┘\neach block is an entry");
        let every_other: Vec<_> = (0..600).step_by(2).map(|j| (0, j)).collect();
        assert!(plot(&[600], &every_other, true).contains(&"▄".repeat(60)));
    }

    #[test]
    fn plots_fit_their_size_and_show_every_element() {
        for shape in
            [[61, 61], [1_000_000, 1_000_000], [1, 1_000_000], [1_000_000, 1], [120, 121], [59, 7], [5_000, 77]]
        {
            for unicode in [true, false] {
                for entry in [(0, 0), (shape[0] - 1, shape[1] - 1), (shape[0] / 2, shape[1] / 3)] {
                    // One faint entry beside a dense corner.
                    let mut entries: Vec<_> = (0..500).map(|_| (shape[0] - 1, 0)).collect();
                    entries.push(entry);
                    let alone = plot(&shape, &[entry], unicode);
                    let lines: Vec<&str> = alone.lines().collect();
                    assert!(lines.len() <= HEIGHT + 3, "{shape:?}");
                    assert!(lines[..lines.len() - 1].iter().all(|l| l.chars().count() <= WIDTH + 2), "{shape:?}");
                    let empty = plot(&shape, &[], unicode);
                    assert_ne!(alone, empty, "{shape:?} {entry:?}");
                }
            }
        }
    }
}
