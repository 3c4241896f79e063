//! Tests of passes and schedules, in one binary.

mod kernel_text;
mod optimise_random;
mod pass_filetests;
mod schedule_text;
mod specialisation;
