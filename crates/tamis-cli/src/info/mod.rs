//! `tamis info`: what a tensor is, how it is stored, and where its entries are.

mod facts;
mod text;

pub(crate) use facts::{format_name, structure_as_json};
pub(crate) use text::{bytes, group, wrapped};

use crate::args::InfoArgs;
use crate::load::{self, LoadOptions, load};
use crate::plot::image::Picture;
use crate::plot::terminal::Plot;
use crate::plot::{Plane, for_each_point};
use crate::progress::Progress;
use crate::shell::{CommandResult, Shell};
use facts::TensorReport;
use std::io::Write;
use tamis_ir::diag::{Code, Diagnostic};

/// Describes a file or a generated tensor.
pub(crate) fn info(args: &InfoArgs, shell: &mut Shell) -> CommandResult {
    let format = load::format(args.format.as_deref())?;
    let options =
        LoadOptions { duplicates: args.duplicates.into(), format: format.as_ref(), shape: args.shape.as_deref() };
    let loaded = load(&args.input, &options)?;
    let progress = Progress::start(format!("examining {}", loaded.name));
    let facts = TensorReport::of(&loaded)?;
    let plane = Plane::of(loaded.tensor.shape());
    let mut plot = plane.filter(|_| !args.no_plot && !args.json).map(|plane| Plot::new(plane, shell.unicode));
    let mut picture = plane.filter(|_| args.png.is_some()).map(Picture::new);
    if let (Some(plane), true) = (plane, plot.is_some() || picture.is_some()) {
        // One pass for both.
        for_each_point(&loaded.tensor, &plane, |row, column| {
            if let Some(plot) = &mut plot {
                plot.bins.add(row, column);
            }
            if let Some(picture) = &mut picture {
                picture.bins.add(row, column);
            }
        })?;
    }
    drop(progress);
    match (&args.png, &picture) {
        (Some(path), Some(picture)) => picture.write(path)?,
        (Some(path), None) => {
            let d = Diagnostic::new(Code::E0813, "there is nothing to draw: the tensor has no cells on a plane");
            return Err(d.in_file(path.display().to_string()).help("leave out --png").into());
        }
        (None, _) => {}
    }
    if args.json {
        return shell.print_json(&facts.as_json());
    }
    write!(shell.out, "{}", text::describe(&facts, shell.colour))?;
    if let Some(plot) = plot {
        writeln!(shell.out)?;
        for line in plot.lines() {
            writeln!(shell.out, "  {line}")?;
        }
    }
    Ok(())
}
