//! Text to syntax: the lexer, and the parsers of loop programs and index notation.

pub mod lexer;
pub mod parser;
pub mod syntax;
