//! Writer of FROSTT files.

use super::super::tensor::does_not_fit;
use super::super::tns::extent;
use super::text::{push_integer, push_value, write_comments, write_lines};
use super::{WriteOptions, with_zero_fill};
use crate::{Coordinates, Tensor, ValueArray};
use std::io::{self, Write};
use tamis_ir::Kind;
use tamis_ir::diag::Result;

/// A tensor ready to be written.
pub(super) struct TnsJob {
    entries: Coordinates,
    header: bool,
    comments: Vec<String>,
}

impl TnsJob {
    pub(super) fn new(tensor: &Tensor, options: &WriteOptions) -> Result<TnsJob> {
        if tensor.dtype().kind() == Kind::Complex {
            let help = if tensor.rank() <= 2 && tensor.rank() > 0 { ".mtx, .npz or .npy" } else { ".npz or .npy" };
            return Err(does_not_fit("FROSTT files hold real numbers, not complex ones", format!("write {help}")));
        }
        let entries = with_zero_fill(tensor)?.try_to_coordinates()?;
        if let ValueArray::U64(values) = &entries.values
            && let Some(large) = values.iter().find(|v| i64::try_from(**v).is_err())
        {
            let message = format!("{large} does not fit 64 bits with a sign, as integers of FROSTT files do");
            return Err(does_not_fit(message, "write .npz or .npy"));
        }
        // Without entries, only a header specifies the rank.
        let header = options.header || entries.is_empty();
        Ok(TnsJob { entries, header, comments: options.comments.clone() })
    }

    /// The shape without trailing empty slices, if there are any and there is no header.
    pub(super) fn reads_back_as(&self) -> Option<Vec<u64>> {
        let read: Vec<u64> = self.entries.columns.iter().map(extent).collect();
        (!self.header && read != self.entries.shape).then_some(read)
    }

    pub(super) fn emit(&self, out: &mut dyn Write) -> io::Result<()> {
        let Coordinates { shape, columns, values } = &self.entries;
        if self.header {
            writeln!(out, "# extended FROSTT format")?;
        }
        write_comments(out, "#", &self.comments)?;
        if self.header {
            writeln!(out, "{} {}", shape.len(), values.len())?;
            writeln!(out, "{}", shape.iter().map(u64::to_string).collect::<Vec<_>>().join(" "))?;
        }
        write_lines(out, values.len(), |line, k| {
            for column in columns {
                push_integer(line, column.get(k) + 1);
                line.push(b' ');
            }
            push_value(line, values, k);
            line.push(b'\n');
        })
    }
}
