//! Text to syntax: the lexer, and the parser of loop programs.

pub mod lexer;
pub mod parser;
pub mod syntax;
