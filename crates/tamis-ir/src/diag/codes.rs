//! The stable codes of diagnostics: one row each, with what `tamis explain CODE` prints.

use std::fmt;
use std::str::FromStr;

macro_rules! codes {
    ($($code:ident $title:literal $explanation:literal)*) => {
        /// A stable code; its text never changes meaning, and a retired code is not reused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs)]
        pub enum Code { $($code),* }

        impl Code {
            /// Every code, in order.
            pub const ALL: &'static [Code] = &[$(Code::$code),*];

            /// The code as users see it.
            pub const fn name(self) -> &'static str {
                match self { $(Code::$code => stringify!($code)),* }
            }

            /// What the code is about, in a few words.
            pub const fn title(self) -> &'static str {
                match self { $(Code::$code => $title),* }
            }

            /// What went wrong, why it is a mistake, and what would work.
            pub const fn explanation(self) -> &'static str {
                match self { $(Code::$code => $explanation),* }
            }
        }
    };
}

codes! {
E0101 "unexpected token"
"The text is not a loop program at this place: something else was expected here.

Loop programs are a subset of Python. A program looks like this:

    def rowsum(A):
        y = tensor(\"dense\")
        for i, j in _:
            y[i] += A[i,j]
        return y"
E0102 "indentation"
"Blocks are marked by indentation, as in Python: the lines of one block start in the same column,
and the line that opens a block ends in a colon. Use four spaces; a tab goes to the next multiple of eight columns."
E0103 "malformed literal"
"A number or a string is not well-formed, or a character has no meaning here. Integers must fit 64 bits.
Floats look like 1.0, 1e-3 or inf; imaginary numbers like 2.0j; strings are quoted with ' or \"."
E0104 "statement that loop programs do not have"
"Loop programs have declarations, assignments, `for`, `if`, `pass` and one final `return`. There is no
`while`, `break` or `continue`: iteration is over index ranges. A reduction into `short_circuit_scalar(...)` may be
left as soon as its value can no longer change; that is for speed, and never changes a result."
E0105 "program too deeply nested or too long"
"Expressions and blocks may be nested 100 deep, and a program may be 1 MB long. Bind parts of a large
expression to names."
E0106 "loop header"
"A loop is `for i in _:` (the extent comes from the tensors that i indexes), `for i in range(n):` or
`for i in range(a, b):`; `for i, j in _:` nests two loops. The bounds may be any integer expressions. There
is no step: write the stride in the subscript, as in `A[2*i]`."
E0107 "declaration"
"A tensor is declared by `X = tensor(\"FORMAT\", fill=0, dtype=\"f64\", shape=(m, n))`, where all but the format
may be left out; a scalar by `s = scalar(0.0)`, `sparse_scalar(0.0)` or `short_circuit_scalar(0)`."
E0108 "return"
"A program ends in one `return` that names its results: tensors or scalars declared at the top of the
program, outside of any loop or `if`."
E0109 "index notation instead of a loop program"
"Index notation (`C[i,k] = A[i,j] * B[j,k]`) says what to compute; a loop program says how. Here only a
loop program can stand."
E0110 "definition of an operator"
"An operator is defined before the program that uses it, by a function that returns one expression:

    @op(commutative, associative, identity=inf)
    def least(a, b):
        return select(a < b, a, b)

The body uses its operands, numbers, built-in operators and operators that were defined before: not itself, and no
tensors. Laws are commutative, associative, idempotent, identity=, left_identity=, right_identity= and annihilator=, each
optional; they are said of operators with two operands."
E0111 "index notation"
"Index notation is one statement per line, or several separated by `;`: `C[i,k] = A[i,j] * B[j,k]`. The left is a name with index
variables; the right is any expression of tensors, scalars and indices. `sum[j](..)`, `prod`, `min`, `max`, `any` and `all` reduce over
indices; `+=`, `min=` and so on say how indices that are missing on the left are reduced. NumPy's `ij,jk->ik` and
`y(i) = A(i,j) * x(j)` are read, too."
E0112 "reduction that can be read in two ways"
"An index that is missing on the left is reduced over the smallest sub-expression that holds all of its uses. Where a larger one would
give something else, as in `y[i] = abs(A[i,j])`, say which is meant: `abs(sum[j](A[i,j]))` or `sum[j](abs(A[i,j]))`."
E0113 "index that nothing bounds"
"The extent of an index comes from the dimensions that it subscripts on the right, or from its range: `y[i] = x[i+k] for k in range(3)`. An
index that stands on the left alone, or only as a number, has no extent."
E0114 "value overwritten"
"A second assignment to a name must read its first value, or come after a statement that does; otherwise the first value is lost. A result
cannot have the name of an operand, unless its statement reads the operand: `x[i] = 2*x[i]`."

E0201 "unknown name"
"The name is not a parameter, a declared tensor, a scalar, a `let` or a loop index at this place."
E0202 "used outside its scope"
"The name is declared in the program, but not at this place: it is declared further down, or inside
a block that has ended. Move the declaration up."
E0203 "name declared twice"
"Each name means one thing in a block. Choose another name."
E0204 "assignment to something that cannot change"
"Parameters and loop indices cannot be assigned, and a name bound by `d = ...` in an outer block
cannot be bound again in an inner one (in Python that would change the outer value). Declare a result
with `tensor(...)`, or a variable with `scalar(...)`."
E0205 "unknown function"
"The name is not in the operator table. `docs/reference/operators.md` lists all functions."
E0206 "result that is not one"
"`return` names tensors or scalars declared by the program. A parameter or a loop index is not a result."

E0301 "operand types do not fit the operator"
"For example, complex numbers have no order, so `<`, `min` and `max` do not take them, and bitwise
operators take integers and booleans only."
E0302 "value does not fit the result's type"
"Storing a float into an integer tensor (or a complex number into a real one, or a number into a
boolean one) would silently lose something. Convert it explicitly, as in `i64(x)`, `real(x)` or `x != 0`,
or declare the result with another dtype."
E0303 "value may be missing"
"A permissive access `A[~(i-1)]` has no value when its subscript is out of bounds. Give one with
`coalesce(A[~(i-1)], 0)` before the value is stored, tested or used as a subscript."
E0304 "wrong number of arguments"
"The function takes another number of arguments."
E0305 "subscript or bound that is not an integer"
"Subscripts and the bounds of `range` are integers. Convert with `i64(x)` if that is what you mean."
E0306 "literal does not fit"
"A literal takes the type of the tensor it meets, and must fit it: 300 is not a u8. Convert the tensor,
as in `i64(A[i]) + 300`."
E0307 "operator that cannot update"
"An update `X[i] op= e` needs a binary operator whose result can be stored in X again."
E0308 "unknown value type"
"Value types are bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 c64 c128."
E0309 "law that does not hold"
"Every law that is declared of an operator is tested on the types that it is used with: on values at the edges, NaN and
infinities among them, and on some others; floats up to rounding where the law is about rearranging. One case was found in which
the law does not hold. Results would then depend on the order in which they are computed, so it is refused: declare fewer laws (a
program needs none of them), or change the body. An annihilator is tested with finite operands only."

E0401 "wrong number of subscripts"
"A tensor takes as many subscripts as it has dimensions, and the same number wherever it is used."
E0402 "dimensions do not agree"
"One loop index runs over dimensions of different sizes. If that is intended, bound the loop with
`range(a, b)`, or make the access permissive with `~`."
E0403 "extent cannot be inferred"
"Nothing says how far this index or dimension goes. Use the index as a bare subscript of a tensor whose
size is known, write `range(n)` instead of `_`, or declare the tensor with `shape=(...)`."
E0404 "size overflows"
"The product of the dimensions does not fit 64 bits (for a dense tensor) or a dimension is larger
than 2^63-1."
E0405 "subscript out of range"
"The subscript leaves the tensor for some value of its indices. Bound the loop with `range(a, b)`, or
permit it with `~` and say what is read outside with `coalesce`."
E0406 "extent is not what the loop says"
"`for i in exactly(_, 100):` promises that the loop takes 100 values, `at_most(_, 100)` no more than that. The tensors that the
program is called with say otherwise. Change or leave out the bound, or call the program with tensors of that size."

E0501 "tensor read and written in one scope"
"Within one statement of the block that declares it, a tensor is either read or updated. Finish writing
before reading (in the next statement of that block), or accumulate in a temporary declared
further in. `X[i] = min(X[i], e)` is an update, not a read, and so is `X[i] += e`; scalars may be read and written freely."
E0502 "updated parameter that is not returned"
"The tensors that a program is called with never change. A program may update a parameter, as in `x[i] *= 2`: that makes a new tensor,
which starts as a copy of the operand, and which the program has to return. For intermediate values, declare a tensor with
`tensor(...)`."

E0601 "format"
"A format is `[ (i,j,...) -> (expr,...) : ] level, level, ... [ ; leaf ]`, or one of the short names
dense csr csc dcsr dcsc coo csf bsr(R,C). For example `(i,j) -> (j,i): dense, sparse; element(0)`."
E0602 "unknown level or leaf"
"Levels are dense sparse singleton runs sparse_runs interval blocks band hash bytemap; leaves are
element(FILL) and pattern."
E0603 "format of another rank"
"The format has a level for each storage dimension of a tensor of another rank. `dense`, `coo` and `csf`
take any rank."
E0604 "level cannot stand here"
"Not every level makes sense below every other: `sparse(nonunique)` stores one coordinate per
entry, so the levels below it must start with `singleton`, for instance."
E0605 "not available yet"
"The words are understood, but this version of Tamis cannot do this yet."
E0606 "map from dimensions to levels"
"Every dimension must be stored by exactly one level, in any order: `(i,j) -> (j,i)`. A dimension may
also be cut in two by `i/4` and `i%4`."
E0607 "level searched"
"The loops do not go through a tensor in the order in which its levels are stored, so each visit has to search for a
coordinate instead of stepping to it. This works; storing the tensor in the order of the loops (`csc` instead of
`csr`, say), or another order of loops, is faster. Where the search is meant, `follow(i)` says so."
E0608 "protocol that a level does not have"
"`walk` steps through what is stored, `follow` looks single coordinates up, `gallop` leads and skips ahead by search. Every level
can be walked and followed; only lists of coordinates can be galloped over."
E0609 "entries without numbers"
"`A.nnz`, `A.coords[d, p]`, `A.data[p]` and `A.first[i]` number the stored entries of a parameter in the order in which they are stored. A `bytemap`
lists what was touched beside an array with room for everything, runs, blocks and bands store stretches, and blocks and diagonals of formats such as `bsr` hold more
than what was given: their entries have no numbers that values are found by."
E0610 "coordinates in any order"
"A `sparse(nonordered)` level can be read by a loop that goes over its coordinates alone and writes what does not depend on their order.
Everything else needs them sorted: merging with other tensors, searching for one of them, a part of a loop. Converting to
`sparse` sorts."
E0611 "dense loop over a sparse operand"
"The loop visits every coordinate, although an operand along it is sparse: where the operand holds its fill value, the statement still
has an effect. That is what the program means, but its time grows with the size of the tensor, not with the number of
stored elements (nnz). Choose fill values so that the statement is a no-op at the fill, store the result as `dense`, or guard the
statement so that it runs at stored elements only."

E0701 "arrays of a level"
"The arrays given for a level do not fit its definition: one is missing, has the wrong length or the
wrong type."
E0702 "positions are not a partition"
"A `pos` array starts at 0, never decreases, and ends at the length of `crd`."
E0703 "coordinate out of range"
"Every coordinate lies in 0..n where n is the size of its dimension."
E0704 "coordinates out of order"
"The coordinates of a fiber are stored in increasing order, each once. Build the tensor from
coordinates instead, which sorts them and combines duplicates."
E0705 "number does not fit its width"
"Positions and coordinates are stored with 8, 16, 32 or 64 bits, and never wrap around. Leave the
width out and a sufficient one is chosen."
E0706 "too large"
"The tensor does not fit this machine: its size overflows, or more memory is needed than there is."
E0707 "not representable in this format"
"The format cannot hold this tensor: for example, `singleton` holds exactly one entry per fiber."
E0708 "duplicate coordinates"
"Two entries have the same coordinates, and nothing says how to combine them. Choose one of sum, min, max,
prod, any, all, first or last."
E0709 "value of another type"
"A pattern holds only `true`; a fill must be a value of the tensor's type."
E0710 "gradient would be lost"
"The operand is a PyTorch tensor that requires a gradient, or was computed from one. No derivatives are recorded here, so the result would
not be connected to it, and training would go on without this part of the model. `x.detach()` says that no gradient is wanted."

E0801 "file cannot be read"
"The operating system refused, or the file is not there."
E0802 "unknown kind of file"
"The kind of a file is known by its extension: .mtx .tns .npz .bsp.npz .npy .smtx .pbm .pgm
.idx1-ubyte .idx3-ubyte .txt, each also .gz."
E0803 "header"
"The first lines of the file do not say what they must."
E0804 "file ends early, or goes on too long"
"The number of entries differs from the one that the header promises."
E0805 "malformed entry"
"A line of the file is not an entry: a number is malformed, missing, or too much."
E0806 "index out of range"
"An index is outside the shape that the header states, or is below 1."
E0807 "entry repeated"
"The same coordinates stand in the file twice. Read it with `--duplicates sum` (or min, max, first, last)
to combine them."
E0808 "entry that the symmetry forbids"
"A symmetric, skew-symmetric or hermitian file holds one triangle, and the other follows from it: a skew-symmetric
file must not have entries on the diagonal, and a hermitian one only real numbers there."
E0809 "feature of a file that is not supported"
"The file is well-formed as far as we know, but uses something that Tamis does not read."
E0810 "corrupt archive"
"The zip archive, or an array inside it, is damaged or not what it must be."
E0811 "file cannot be written"
"The operating system refused. Nothing was changed: results are written aside, then renamed."
E0812 "corrupt compression"
"The gzip stream is damaged or ends early."
E0813 "tensor does not fit the file format"
"For example, Matrix Market holds matrices only."
E0814 "shape that the file does not keep"
"A list of entries (.tns) ends at the last entry of each dimension, so a reader would see a smaller tensor. Write the
shape into the file with `--header`, or use a kind of file that states it, such as .mtx or .npz. This is a warning."

E0901 "input"
"Inputs are NAME=path, NAME=rand, NAME=ones, NAME=rand(shape; density; seed), or a gallery matrix such as
NAME=laplacian(1000)."
E0902 "input missing"
"Every parameter of the program needs an input."
E0903 "name that the program does not have"
"An input, format or output was given for a name that the program does not have."
E0904 "generator"
"The generator is unknown, or its arguments are not what it takes."
E0905 "command line"
"The command does not understand its arguments: an option is unknown, lacks its value, contradicts another one, or has no
meaning for what was asked. `tamis COMMAND --help` lists the options."
E0906 "environment variable"
"An environment variable that Tamis reads does not say what it must. `docs/reference/command.md` lists them all; unset it to get
the default."
E0907 "tensor that the program was not compiled for"
"A compiled program takes tensors of the formats, value types, fills and widths that it was compiled for, in the order of its
parameters; their sizes may differ. Convert the tensor, compile the program for it, or use `run`, which does that by itself."

E1001 "subscript out of range"
"While the program ran, a subscript left its tensor. Make the access permissive with `~`, or bound the loop."
E1002 "loop bounds out of range"
"While the program ran, the bounds of a loop were not usable."
E1003 "too much for the interpreter"
"The reference interpreter visits every point of every loop, stored or not, some three million in a second. This program has too
many of them. In check mode, `--check-limit` says how many are allowed, `none` for any number; smaller inputs are checked sooner."
E1004 "compiled code and interpreter differ"
"In check mode every program is also run by the reference interpreter, and the results are compared: integers and booleans
exactly, floating-point numbers up to rounding, since reductions may be reassociated. They differ, so one of the two is wrong. This
is a bug of Tamis: please report the program and the tensors. `--interpret` gives the interpreter's results meanwhile."

E1101 "bug of Tamis"
"Something happened that no program and no data should be able to cause. Please report what the message says, with the program
and, if you can, the tensors. `--interpret` runs programs without the compiler meanwhile."

E1201 "schedule"
"A schedule is a list of commands, separated by `;` or `,`, each a name with arguments: reorder(i,k,j), split(i,i0,i1,32),
tile(i,j,i0,i1,j0,j1,32,32), fuse(i,j,f), pos(j,p,A), bound(i,n,exactly), unroll(i,4), vectorize(i), parallelize(i),
precompute(A[i,j] * x[j], j, jw, dense), insert_workspace(coord, 1024), convert(A, csc). `docs/reference/schedules.md` tells what each does."
E1202 "name in a schedule"
"A command names a loop, a tensor or an expression that the program does not have (any more: the commands before it may have
replaced it), or several of them. The second loop over `k` in the text of the program is `k#2`. A new name must not mean something else already."
E1203 "loops that do not form one nest"
"Loops can be reordered, tiled and fused if one contains the other and nothing but bound names and conditions stands between them: a
statement between two loops runs once per turn of the outer one, and would run more often further inside."
E1204 "order that matters"
"Loops may change places if their turns are independent, or meet only in updates by one operator that is associative and commutative
(`+=`, `max=`, ...). An assignment keeps the last value and `choose` the first, a scalar that is read while it changes has a different value
in each turn, and a loop whose bounds use an index must stay inside that index's loop."
E1205 "extent without a name"
"`split` and `fuse` write down how far a loop goes, as the size of a tensor's dimension. An extent that follows from an affine
subscript (the valid part of a convolution) or from what is written has no such name: write the loop with `range(a, b)`, and declare the
tensors that it writes with `shape=(...)`."
E1206 "turns of a loop that would disturb each other"
"The turns of a parallel or vectorised loop run at once. Each may write elements of its own (results that are subscripted by the
loop's index at their outermost level), update shared ones by one operator that is associative and commutative, and have temporaries of
its own."
E1207 "number in a schedule"
"Factors of `split`, `tile`, `unroll` and `vectorize` and the length of `bound` are positive integers."
E1208 "expression that cannot be computed before"
"`precompute` stores the value of an expression for all values of the given indices, before the loops over them. Every index of the
expression must be given or belong to a loop further out; others are only allowed if the whole right-hand side of a reduction is
precomputed."
E1209 "no workspace to insert"
"A workspace is inserted between loops and a result that they write out of order, if the result's format cannot be written so. Loops that go over
the levels of a result from the outermost to the innermost append to it, and `dense`, `bytemap` and `hash` are written in any order as they are."
E1210 "loop that cannot go over positions"
"`pos(j, p, A)` makes a loop go over the stored entries of a parameter instead of coordinates. The loop must go over the whole of the innermost levels of
`A`, in their order (levels further out belong to loops around it; `fuse` makes one loop of several), what it does must change nothing where `A` stores
nothing, as a product with `A[i,j]` does, and at least one of those levels must leave something out."
E1211 "order of loops that storage forbids"
"Loops go over the levels of a tensor from the outermost to the innermost. For another order of loops Tamis converts the tensor first; where that was
forbidden (`--keep`), the order cannot be had. The message says which tensor stands in the way, and what converting it would cost."
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Code {
    type Err = ();

    fn from_str(text: &str) -> Result<Code, ()> {
        Code::ALL.iter().find(|code| code.name().eq_ignore_ascii_case(text)).copied().ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_sorted_and_explained() {
        assert!(Code::ALL.windows(2).all(|w| w[0].name() < w[1].name()));
        for code in Code::ALL {
            assert!(code.explanation().len() > 40, "{code}");
            assert_eq!(code.name().parse(), Ok(*code));
        }
    }
}
