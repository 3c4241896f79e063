//! Tests of passes and schedules, in one binary.

mod optimise_random;
mod schedule_text;
mod specialisation;
