//! Counting entries in the cells of a coarse grid: the data behind every plot.

/// The plane that a tensor is drawn on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Plane {
    pub(crate) rows: u64,
    pub(crate) columns: u64,
    /// The number of dimensions that are projected away; each cell of the plane stands for that
    /// many more.
    pub(crate) hidden: usize,
    /// A vector is a plane of one row, and drawn as a strip.
    pub(crate) strip: bool,
}

impl Plane {
    /// The first two dimensions; a vector lies in a row. `None` if there is nothing to draw.
    pub(crate) fn of(shape: &[u64]) -> Option<Plane> {
        let plane = match *shape {
            [] => return None,
            [n] => Plane { rows: 1, columns: n, hidden: 0, strip: true },
            [rows, columns, ref rest @ ..] => Plane { rows, columns, hidden: rest.len(), strip: false },
        };
        (plane.rows > 0 && plane.columns > 0).then_some(plane)
    }
}

/// One dimension of the grid.
#[derive(Clone, Debug)]
struct Axis {
    /// The number of bins.
    bins: usize,
    /// Bins per coordinate, at most 1.
    scale: f64,
    /// The number of coordinates in each bin.
    members: Vec<f64>,
}

impl Axis {
    fn new(extent: u64, bins: usize) -> Axis {
        let bins = bins.max(1).min(usize::try_from(extent).unwrap_or(usize::MAX));
        let mut axis =
            Axis { bins, scale: bins as f64 / extent as f64, members: vec![extent as f64 / bins as f64; bins] };
        // Uneven bins would show as stripes where there are few coordinates in each.
        if extent <= 1 << 16 {
            axis.members.fill(0.0);
            for k in 0..extent {
                let bin = axis.bin(k);
                axis.members[bin] += 1.0;
            }
        }
        axis
    }

    #[inline]
    fn bin(&self, coordinate: u64) -> usize {
        ((coordinate as f64 * self.scale) as usize).min(self.bins - 1)
    }
}

/// The number of entries in each cell of a grid.
#[derive(Clone, Debug)]
pub(crate) struct Bins {
    rows: Axis,
    columns: Axis,
    counts: Vec<u64>,
}

impl Bins {
    /// An empty grid over a plane.
    pub(crate) fn new(plane: &Plane, height: usize, width: usize) -> Bins {
        let (rows, columns) = (Axis::new(plane.rows, height), Axis::new(plane.columns, width));
        let counts = vec![0; rows.bins * columns.bins];
        Bins { rows, columns, counts }
    }

    /// Counts one entry, whose coordinates are below the plane's sizes.
    #[inline]
    pub(crate) fn add(&mut self, row: u64, column: u64) {
        let at = self.rows.bin(row) * self.columns.bins + self.columns.bin(column);
        self.counts[at] += 1;
    }

    pub(crate) fn height(&self) -> usize {
        self.rows.bins
    }

    pub(crate) fn width(&self) -> usize {
        self.columns.bins
    }

    /// The mean number of entries per cell of the plane.
    pub(crate) fn density(&self, row: usize, column: usize) -> f64 {
        let count = self.counts[row * self.columns.bins + column];
        count as f64 / (self.rows.members[row] * self.columns.members[column])
    }

    /// The shade of each cell, row by row: 0 for empty cells, else above 0 up to 1 at the densest
    /// cell, by the logarithm of the density, so that a few entries differ visibly from none.
    pub(crate) fn shades(&self) -> Vec<f64> {
        const STEEPNESS: f64 = 60.0;
        let cells = (0..self.height()).flat_map(|row| (0..self.width()).map(move |column| (row, column)));
        let mut shades: Vec<f64> = cells.map(|(row, column)| self.density(row, column)).collect();
        let densest = shades.iter().copied().fold(0.0, f64::max);
        for shade in &mut shades {
            if *shade > 0.0 {
                *shade = (1.0 + STEEPNESS * *shade / densest).ln() / (1.0 + STEEPNESS).ln();
            }
        }
        shades
    }

    /// The number of entries in the fullest cell.
    pub(crate) fn most(&self) -> u64 {
        self.counts.iter().copied().max().unwrap_or(0)
    }

    /// The mean number of rows and columns of the plane per cell.
    pub(crate) fn cell_size(&self) -> (f64, f64) {
        (1.0 / self.rows.scale, 1.0 / self.columns.scale)
    }
}

/// Height and width that show a plane in its proportions within limits, and whether they are its
/// proportions: very long planes are given at least `least` in the short direction, or one could
/// not see anything.
pub(crate) fn fit(rows: f64, columns: f64, height: usize, width: usize, least: usize) -> (usize, usize, bool) {
    let scale = (height as f64 / rows).min(width as f64 / columns).min(1.0);
    let side = |extent: f64, limit: usize| {
        let exact = (extent * scale).round().max(1.0) as usize;
        let whole = if extent < limit as f64 { extent.ceil() as usize } else { limit };
        (exact.max(least.min(whole)).min(limit), exact)
    };
    let ((h, exact_h), (w, exact_w)) = (side(rows, height), side(columns, width));
    (h, w, h == exact_h && w == exact_w)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_falls_into_one_bin() {
        let plane = Plane::of(&[130, 7]).unwrap();
        let mut bins = Bins::new(&plane, 120, 120);
        (0..130).for_each(|i| (0..7).for_each(|j| bins.add(i, j)));
        assert_eq!((bins.height(), bins.width()), (120, 7));
        assert_eq!(bins.counts.iter().sum::<u64>(), 910);
        assert!(bins.shades().iter().all(|s| (*s - 1.0).abs() < 1e-12), "a full matrix is evenly dark");
    }

    #[test]
    fn huge_and_empty_planes() {
        assert_eq!(Plane::of(&[]), None);
        assert_eq!(Plane::of(&[3, 0]), None);
        let mut bins = Bins::new(&Plane::of(&[i64::MAX as u64, 5, 9]).unwrap(), 10, 10);
        bins.add(i64::MAX as u64 - 1, 4);
        assert_eq!(bins.shades().iter().filter(|s| **s > 0.0).count(), 1);
        assert_eq!(bins.shades().last(), Some(&1.0));
    }

    #[test]
    fn proportions() {
        assert_eq!(fit(1000.0, 1000.0, 120, 120, 4), (120, 120, true));
        assert_eq!(fit(77.0, 760.0, 120, 120, 4), (12, 120, true));
        assert_eq!(fit(1e6, 3.0, 120, 120, 4), (120, 3, false));
        assert_eq!(fit(1e6, 1e3, 120, 120, 4), (120, 4, false));
        assert_eq!(fit(5.0, 6.0, 120, 120, 4), (5, 6, true));
    }
}
