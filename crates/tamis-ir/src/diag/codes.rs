//! Diagnostic codes: one row each, with a title and the explanation that `tamis explain CODE`
//! prints.

use std::fmt;
use std::str::FromStr;

macro_rules! codes {
    ($($code:ident $title:literal $explanation:literal)*) => {
        /// A stable code; its text never changes meaning, and a retired code is not reused.
        ///
        /// ```
        /// use tamis_ir::Code;
        /// let code: Code = "e0402".parse()?;
        /// assert_eq!(code, Code::E0402);
        /// println!("{code}: {}\n\n{}", code.title(), code.explanation());
        /// # Ok::<(), tamis_ir::diag::UnknownCode>(())
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs)]
        pub enum Code { $($code),* }

        impl Code {
            /// Every code, in order.
            ///
            /// ```
            /// use tamis_ir::Code;
            /// let parsing = Code::ALL.iter().filter(|code| code.name().starts_with("E01"));
            /// assert!(parsing.count() > 3);
            /// ```
            pub const ALL: &'static [Code] = &[$(Code::$code),*];

            /// The code as users see it.
            ///
            /// ```
            /// assert_eq!(tamis_ir::Code::E0402.name(), "E0402");
            /// ```
            pub const fn name(self) -> &'static str {
                match self { $(Code::$code => stringify!($code)),* }
            }

            /// The title, in a few words.
            ///
            /// ```
            /// assert_eq!(tamis_ir::Code::E0101.title(), "unexpected token");
            /// ```
            pub const fn title(self) -> &'static str {
                match self { $(Code::$code => $title),* }
            }

            /// The explanation: the problem, its reason, and a correct alternative.
            ///
            /// ```
            /// println!("{}", tamis_ir::Code::E0101.explanation());
            /// ```
            pub const fn explanation(self) -> &'static str {
                match self { $(Code::$code => $explanation),* }
            }
        }
    };
}

codes! {
E0101 "unexpected token"
"The parser expected something else at this position.

Loop programs are a subset of Python. A program looks like this:

    def rowsum(A):
        y = tensor(\"dense\")
        for i, j in _:
            y[i] += A[i,j]
        return y"
E0102 "inconsistent indentation"
"Indentation marks blocks, as in Python: all lines of a block start in the same column, and the line that opens
a block ends in a colon. Use four spaces; a tab advances to the next multiple of eight columns."
E0103 "malformed literal"
"A number, a string or a character is malformed. Integers must fit 64 bits. Floats look like 1.0, 1e-3 or inf;
imaginary numbers like 2.0j; strings are quoted with ' or \"."
E0104 "unsupported statement"
"Loop programs have declarations, assignments, `for`, `if`, `pass` and one final `return`. They have no `while`,
`break` or `continue`: iteration is over index ranges. A reduction into `short_circuit_scalar(...)` may exit early
when its value can no longer change; this never changes a result."
E0105 "program too deeply nested or too long"
"Expressions and blocks may be nested 100 deep, and a program may be 1 MB long. Bind subexpressions of a large
expression to names."
E0106 "malformed loop header"
"A loop is `for i in _:` (the extent is inferred from the tensors that i subscripts), `for i in range(n):` or
`for i in range(a, b):`; `for i, j in _:` nests two loops. The bounds may be any integer expressions. There is no
step: write the stride in the subscript, as in `A[2*i]`."
E0107 "malformed declaration"
"A tensor is declared by `X = tensor(\"FORMAT\", fill=0, dtype=\"f64\", shape=(m, n))`, where everything but the format
is optional; a scalar by `s = scalar(0.0)`, `sparse_scalar(0.0)` or `short_circuit_scalar(0)`."
E0108 "invalid `return`"
"A program ends in one `return` that names its results: tensors or scalars that are declared at the top level of
the program, outside all loops and conditions."
E0109 "index notation instead of a loop program"
"Index notation (`C[i,k] = A[i,j] * B[j,k]`) specifies the result; a loop program specifies the loops. Only a loop
program is accepted here."
E0110 "invalid operator definition"
"An operator is defined before the program that uses it, by a function that returns one expression:

    @op(commutative, associative, identity=inf)
    def least(a, b):
        return select(a < b, a, b)

The body may use its operands, numbers, built-in operators and operators that are defined before it, but neither
itself nor tensors. The laws are `commutative`, `associative`, `idempotent`, `identity=`, `left_identity=`,
`right_identity=` and `annihilator=`. Each is optional; only operators of two operands have laws.
`derivative=(b, a)` declares the derivative by each operand, for gradients: one expression for each."
E0111 "malformed index notation"
"Index notation has one statement per line, or several separated by `;`: `C[i,k] = A[i,j] * B[j,k]`. The left side
is a name with index variables; the right side is an expression of tensors, scalars and indices. `sum[j](..)`,
`prod`, `min`, `max`, `any` and `all` reduce over indices; `+=`, `min=` and so on choose the reduction over indices
that are missing on the left. NumPy's `ij,jk->ik` and TACO's `y(i) = A(i,j) * x(j)` are accepted, too."
E0112 "ambiguous reduction"
"An index that is missing on the left is reduced over the smallest subexpression that contains all of its uses.
If a larger one would give another result, as in `y[i] = abs(A[i,j])`, write the reduction explicitly:
`abs(sum[j](A[i,j]))` or `sum[j](abs(A[i,j]))`."
E0113 "index without an extent"
"The extent of an index comes from the dimensions that it subscripts on the right, or from its range:
`y[i] = x[i+k] for k in range(3)`. An index that occurs only on the left, or only as a number, has no extent."
E0114 "value overwritten"
"A second assignment to a name must read its first value, or follow a statement that does; otherwise the first
value is lost. A result cannot have the name of an operand, unless its statement reads the operand:
`x[i] = 2*x[i]`."
E0115 "no derivative"
"The statement cannot be differentiated: it reads elements by their position, or reduces by an operator other than
`+`, `*`, `min`, `max` and log-sum-exp. Operators of the table and those that users define have derivatives; discrete
ones, such as comparisons and roundings, have derivative 0."
E0116 "nothing to differentiate"
"A gradient is requested of a result or with respect to an operand that does not exist, or the gradient is zero
everywhere: the operand is used as a subscript only, or only through operators whose derivative is 0."
E0117 "assignment cannot be transposed"
"Reverse mode exchanges reading and writing. It needs the size of what is written, and each element to be written once or
updated by an operator: `y[i+j] += ...`. An update of some elements by another operator than `+=` has no derivative."
E0118 "loop program that is no index notation"
"A loop program is differentiated as index notation, whose statements are computed one after the other for all
iterations. So each element is written once or updated by an associative operator (`+=`, `-=`, `*=`, `min=`, `max=`), and
a statement reads what is complete, or what the same iteration has written."

E0201 "unknown name"
"The name is not a parameter, a declared tensor, a scalar, a bound name or a loop index in this scope."
E0202 "name used outside its scope"
"The program declares the name, but not in this scope: the declaration follows further down, or is inside a block
that has ended. Move the declaration up."
E0203 "duplicate declaration"
"A name has one meaning per block. Choose another name."
E0204 "assignment to an immutable name"
"Parameters and loop indices cannot be assigned, and a name bound by `d = ...` in an outer block cannot be rebound
in an inner one (in Python that would change the outer value). Declare a result with `tensor(...)`, or a variable
with `scalar(...)`.

Tensors are immutable, too: in Python, `tm.at(A)[0, 0].set(5.0)` makes a new one."
E0205 "unknown function"
"The operator table has no function of this name. The page `docs/reference/operators.md` lists all functions."
E0206 "invalid result"
"`return` names tensors or scalars that the program declares. A parameter or a loop index is not a result."

E0301 "operand types do not fit the operator"
"For example, complex numbers have no order, so `<`, `min` and `max` do not accept them, and bitwise operators
accept integers and booleans only."
E0302 "value does not fit the result's type"
"Storing a float into an integer tensor (or a complex number into a real one, or a number into a boolean one) would
lose information silently. Convert explicitly, as in `i64(x)`, `real(x)` or `x != 0`, or declare the result with
another dtype."
E0303 "value may be missing"
"A permissive access `A[~(i-1)]` has no value if its subscript is out of bounds. Supply one with
`coalesce(A[~(i-1)], 0)` before the value is stored, tested or used as a subscript.

A function under `@tm.jit` is traced before there are values, so `if`, `while`, `and` and `or` cannot test one: use
`tm.where`, `&` and `|`."
E0304 "wrong number of arguments"
"The function takes another number of arguments; the message says how many. The page
`docs/reference/operators.md` lists all functions with their operands."
E0305 "subscript or bound is not an integer"
"Subscripts and the bounds of `range` are integers. Convert with `i64(x)` if that is intended."
E0306 "literal does not fit"
"A literal takes the type of the tensor that it is combined with, and must fit it: 300 is not a u8. Convert the
tensor, as in `i64(A[i]) + 300`."
E0307 "operator cannot update"
"An update `X[i] op= e` needs a binary operator whose result can be stored in X."
E0308 "unknown value type"
"Value types are `bool`, `i8`, `i16`, `i32`, `i64`, `u8`, `u16`, `u32`, `u64`, `f32`, `f64`, `c64` and `c128`."
E0309 "declared law does not hold"
"Every declared law of an operator is tested on the types that it is used with: on edge cases, including NaN and
infinities, and on random values; on floats up to rounding if the law reorders operations. The test found a
counterexample. Results would depend on the order of evaluation, so the operator is rejected: declare fewer laws
(no program needs any), or change the body. An annihilator is tested with finite operands only."

E0401 "wrong number of subscripts"
"A tensor takes as many subscripts as it has dimensions, and the same number everywhere."
E0402 "dimensions do not agree"
"One loop index runs over dimensions of different sizes. If that is intended, bound the loop with `range(a, b)`,
or make the access permissive with `~`.

In Python, shapes that do not fit an operator are this error, too: `A @ x` needs as many rows of `x` as columns of
`A`; other operators broadcast from the last dimension."
E0403 "extent cannot be inferred"
"Nothing determines the extent of this index or dimension. Use the index as a bare subscript of a tensor of known
size, write `range(n)` instead of `_`, or declare the tensor with `shape=(...)`."
E0404 "size overflows"
"The product of the dimensions does not fit 64 bits (for a dense tensor), or a dimension is larger than 2^63-1.
Store the large dimensions in sparse levels, as in `tensor(\"coo\")`, or choose a smaller shape."
E0405 "subscript out of bounds"
"For some value of its indices, the subscript is outside the tensor. Bound the loop with `range(a, b)`, or permit
it with `~` and supply the value outside with `coalesce`."
E0406 "extent violates its bound"
"`for i in exactly(_, 100):` asserts that the loop has 100 iterations, `at_most(_, 100)` that it has no more. The
tensors that the program is called with contradict that. Change or remove the bound, or call the program with
tensors of that size."

E0501 "tensor read and written in one scope"
"Within one statement of the block that declares it, a tensor is either read or updated. Finish writing before you
read (in the next statement of that block), or accumulate in a temporary that is declared further inside.
`X[i] = min(X[i], e)` and `X[i] += e` are updates, not reads; scalars may be read and written freely."
E0502 "updated parameter is not returned"
"The arguments of a program never change. A program may update a parameter, as in `x[i] *= 2`: this creates a new
tensor that starts as a copy of the argument, and the program must return it. For intermediate values, declare a
tensor with `tensor(...)`."

E0601 "malformed format"
"A format is `[ (i,j,...) -> (expr,...) : ] level, level, ... [ ; leaf ]`, or one of the short names `dense`,
`csr`, `csc`, `dcsr`, `dcsc`, `coo`, `csf` and `bsr(R,C)`. For example `(i,j) -> (j,i): dense, sparse; element(0)`."
E0602 "unknown level or leaf"
"Levels are `dense`, `sparse`, `singleton`, `runs`, `sparse_runs`, `interval`, `blocks`, `band`, `hash` and `bytemap`;
leaves are `element(FILL)` and `pattern`."
E0603 "format of another rank"
"A format has one level for each storage dimension, and this one is for tensors of another rank. `dense`, `coo` and
`csf` take any rank."
E0604 "invalid combination of levels"
"Not every level can be below every other. For instance, `sparse(nonunique)` stores one coordinate per element, so
the levels below it must start with `singleton`."
E0605 "not supported yet"
"The input is valid, but this version of Tamis does not support it yet."
E0606 "invalid map from dimensions to levels"
"Every dimension must be stored by exactly one level, in any order: `(i,j) -> (j,i)`. Two levels may also store the
quotient and the remainder of a dimension, `i/4` and `i%4`."
E0607 "level is searched"
"The loop order differs from the storage order of a tensor, so each access searches for a coordinate instead of
iterating over the stored ones. The result is correct; storing the tensor in loop order (`csc` instead of `csr`, for
example), or another loop order, is faster. `follow(i)` states that the search is intended."
E0608 "level does not support the protocol"
"`walk` iterates over stored coordinates, `follow` looks up single coordinates, `gallop` leads and skips ahead by
search. Every level supports `walk` and `follow`; only coordinate lists support `gallop`."
E0609 "stored elements have no positions"
"`A.nnz`, `A.coords[d, p]`, `A.data[p]` and `A.first[i]` address the stored elements of a parameter by their position
in storage order. Some formats have no such positions: a `bytemap` stores values in a dense array, runs, blocks and
bands store contiguous ranges, and formats such as `bsr` also store padding."
E0610 "unsorted coordinates"
"A `sparse(nonordered)` level can be read by a loop that iterates over its coordinates alone and writes something
independent of their order. Everything else needs sorted coordinates: co-iteration with other tensors, searching, a
subrange of the loop. Converting to `sparse` sorts."
E0611 "dense loop over a sparse operand"
"The loop visits every coordinate, although an operand along it is sparse, because the statement has an effect where
the operand holds its fill value. The result is correct, but the time grows with the size of the tensor instead of
the number of stored elements (nnz). Choose fill values for which the statement is a no-op, store the result as
`dense`, or guard the statement so that it runs at stored elements only. A loop that only searches the operand, because
a subscript such as `j % 8` is not a sum of multiples of indices, is reported, too, and so are windows that are wide
although another operand stores few of their coordinates."

E0701 "invalid arrays of a level"
"The arrays of a level do not match its definition: one is missing, or has the wrong length or type. The page of the
level in `docs/reference/levels` lists its arrays and their lengths."
E0702 "invalid positions"
"A `pos` array starts at 0, never decreases, and ends at the length of `crd`. Building the tensor from
coordinates instead computes positions."
E0703 "coordinate out of range"
"Coordinates are in 0..n, where n is the size of the dimension. Correct the coordinate, or enlarge the shape."
E0704 "unsorted coordinates"
"The coordinates of a fiber are strictly increasing. Build the tensor from coordinates instead, which sorts them and
combines duplicates."
E0705 "index does not fit its width"
"Positions and coordinates are stored with 8, 16, 32 or 64 bits, and never wrap around. Without an explicit width, a
sufficient one is chosen."
E0706 "too large"
"The tensor does not fit this machine: its size overflows, or there is not enough memory. Levels such as
`sparse` store nonzeros only; narrower value types and coordinates (`sparse[u32,u16]`) halve what remains.

In Python, a dense result beyond `tm.config(dense_limit=...)` is refused as well: keep operands sparse, or raise the
limit."
E0707 "not representable in this format"
"The format cannot store this tensor: for example, `singleton` stores exactly one element per fiber. Use a
level without that restriction; `sparse` stores any coordinates."
E0708 "duplicate coordinates"
"Two elements have the same coordinates, and no rule combines them. Choose one of sum, min, max, prod, any, all,
first or last."
E0709 "value of another type"
"A pattern stores only `true`; a fill value must be a value of the tensor's type."
E0710 "gradient would be lost"
"The operand is a PyTorch tensor that requires a gradient, or was computed from one. Tamis records no derivatives
here, so the result would be detached silently, and training would ignore this part of the model. `x.detach()`
states that no gradient is needed."

E0801 "file cannot be read"
"The operating system reports an error, or the file does not exist. Check the path and the permissions."
E0802 "unknown file type"
"The extension determines the type of a file: `.mtx`, `.tns`, `.npz`, `.bsp.npz`, `.npy`, `.smtx`, `.pbm`, `.pgm`,
`.idx1-ubyte`, `.idx3-ubyte` or `.txt`, each optionally followed by `.gz`."
E0803 "malformed header"
"The header of the file is malformed or incomplete. The message shows the line and the form that is expected; correct
it, or write the file again."
E0804 "file too short or too long"
"The number of entries differs from the one in the header: the file was cut off, or the header is wrong. Fetch the file
again, or correct the number."
E0805 "malformed entry"
"A line of the file is not a valid entry: a number is malformed, missing, or superfluous. Correct the line
that the message shows."
E0806 "index out of range"
"An index is below 1, or outside the shape in the header. Indices in Matrix Market and FROSTT files start at 1, and
those in smtx files at 0. Correct the entry, or the shape."
E0807 "duplicate entry"
"The file contains the same coordinates twice. Read it with `--duplicates sum` (or min, max, first, last) to combine
them."
E0808 "entry violates the symmetry"
"A symmetric, skew-symmetric or hermitian file stores one triangle, which implies the other: a skew-symmetric file
has no entries on the diagonal, and a hermitian one only real numbers there."
E0809 "unsupported feature of a file"
"The file appears to be well-formed, but uses a feature that Tamis does not read. Convert it with the
library that wrote it, for example to CSR or COO."
E0810 "corrupt archive"
"The zip archive, or an array inside it, is damaged or malformed. Fetch it again, or write it again with
`scipy.sparse.save_npz` or `numpy.savez`."
E0811 "file cannot be written"
"The operating system reports an error. No file was changed: results are written to a temporary file, then renamed."
E0812 "corrupt compression"
"The gzip stream is damaged or truncated, or the file is not compressed although its name ends in .gz. Fetch the file
again, or remove .gz from its name."
E0813 "tensor does not fit the file format"
"For example, Matrix Market stores matrices only. `.bsp.npz` stores any tensor, `.tns` any rank."
E0814 "file format does not store the shape"
"The shape of a coordinate file (.tns) is that of its largest coordinates, so a reader would see a smaller tensor.
Write the shape into the file with `--header`, or use a file type that stores it, such as .mtx or .npz. This is a
warning."

E0901 "invalid input"
"Inputs are `NAME=path`, `NAME=rand`, `NAME=ones`, `NAME=rand(shape; density; seed)`, or a gallery matrix such as
`NAME=laplacian(1000)`."
E0902 "missing input"
"Every parameter of the program needs an input: a file (`A=matrix.mtx`), a generator (`A=laplacian(1000)`), `x=rand`,
`x=ones` or a number. In Python and Rust, pass a tensor for each parameter."
E0903 "no such name in the program"
"The program has no parameter or result of the name that an input, format or output refers to. The message
lists the names that exist."
E0904 "invalid generator"
"The generator is unknown, or its arguments are invalid. `tamis gallery` lists all generators with their arguments."
E0905 "invalid command line"
"An option is unknown, lacks its value, contradicts another one, or does not apply to this command.
`tamis COMMAND --help` lists the options."
E0906 "invalid environment variable"
"An environment variable of Tamis has an invalid value. The page `docs/reference/command.md` lists them all; unset it
to get the default."
E0907 "tensor does not fit the compiled program"
"A compiled program takes tensors of the formats, value types, fill values and index widths that it was compiled for,
in the order of its parameters; their sizes may differ. Convert the tensor, compile the program for it, or use `run`,
which recompiles as needed."

E1001 "subscript out of bounds"
"At run time, a subscript was outside its tensor. Make the access permissive with `~`, or bound the loop.

In Python, an index of a tensor is from -n to n - 1, where n is the size of the dimension."
E1002 "bound or subscript is not a valid integer"
"At run time, a bound of a loop or a subscript was not an integer below 2^63: it was computed from a value that is
missing, infinite or too large. Supply a value with `coalesce`, or limit it with `min` and `max`."
E1003 "too many iterations for the interpreter"
"The reference interpreter visits every point of the iteration space, stored or not, at about three million points
per second. This program has too many. In check mode, `--check-limit` sets the limit, `none` for no limit; smaller
inputs are checked sooner."
E1004 "compiled code and interpreter differ"
"Check mode also runs every program in the reference interpreter and compares the results: integers and booleans
exactly, floating-point numbers up to rounding, since reductions may be reassociated. They differ, so one of the two
is wrong. This is a bug in Tamis: please report the program and the tensors. Until it is fixed, `--interpret` gives
the interpreter's results."

E1101 "internal error"
"This is a bug in Tamis: no program and no data should be able to cause it. Please report the message, with the
program and, if possible, the tensors. Until it is fixed, `--interpret` runs programs without the compiler."

E1201 "malformed schedule"
"A schedule is a list of commands, separated by `;` or `,`, each a name with arguments: `reorder(i,k,j)`,
`split(i,i0,i1,32)`, `tile(i,j,i0,i1,j0,j1,32,32)`, `fuse(i,j,f)`, `pos(j,p,A)`, `bound(i,n,exactly)`, `unroll(i,4)`,
`vectorize(i)`, `parallelize(i)`, `precompute(A[i,j] * x[j], j, jw, dense)`, `insert_workspace(coord, 1024)`,
`convert(A, csc)`. The page `docs/reference/schedules.md` describes each command."
E1202 "unknown or ambiguous name in a schedule"
"A command names a loop, a tensor or an expression that the program does not have (or no longer has: an earlier
command may have replaced it), or more than one of them. The second loop over `k` in the program text is `k#2`. A new
name must be unused."
E1203 "loops are not perfectly nested"
"Loops can be reordered, tiled and fused if one contains the other with nothing but bound names and conditions in
between: a statement between two loops runs once per iteration of the outer one, and would run more often further
inside."
E1204 "reordering would change the result"
"Loops can be interchanged if their iterations are independent, or interact only by updates with one associative and
commutative operator (`+=`, `max=`, ...). An assignment keeps the last value and `choose` the first, a scalar that is
read between updates has a different value in each iteration, and a loop whose bounds use an index must stay inside
that index's loop."
E1205 "extent without a name"
"`split` and `fuse` express the extent of a loop as the size of a tensor's dimension. An extent that follows from an
affine subscript (the valid part of a convolution) or from the values that are written has no such name: write the
loop with `range(a, b)`, and declare the tensors that it writes with `shape=(...)`."
E1206 "iterations are not independent"
"The iterations of a parallel or vectorised loop run simultaneously. Each may write its own elements (of results
whose outermost level is subscripted by the loop index), update shared elements with one associative and commutative
operator, and use temporaries that it declares itself."
E1207 "invalid number in a schedule"
"Factors of `split`, `tile`, `unroll` and `vectorize` and the extent of `bound` are positive integers, and
factors are below 2^31."
E1208 "expression cannot be precomputed"
"`precompute` stores the value of an expression for all values of the given indices, before the loops over them. Every
index of the expression must be given or belong to an outer loop; others are allowed only if the whole right-hand side
of a reduction is precomputed."
E1209 "no workspace to insert"
"A workspace is inserted between loops and a result that they write out of order, if the format of the result cannot
be written so. Loops that iterate over the levels of a result from the outermost to the innermost append to it, and
`dense`, `bytemap` and `hash` support random writes."
E1210 "loop cannot iterate over positions"
"`pos(j, p, A)` makes a loop iterate over the stored elements of a parameter instead of coordinates. The loop must
cover the whole innermost levels of `A`, in their order (outer levels belong to loops around it; `fuse` combines
loops), its body must have no effect where `A` stores nothing, as a product with `A[i,j]` has none, and at least one
of those levels must be sparse."
E1211 "storage order forbids the loop order"
"Loops iterate over the levels of a tensor from the outermost to the innermost. For another loop order Tamis converts
the tensor first; with `--keep`, that loop order is not available. The message names the tensor, and the cost of
converting it."
E1301 "malformed kernel"
"The text is not a well-formed kernel. Kernels are what programs are lowered to: `explain --emit kernel` prints them, and
the tests of optimiser passes read them. A kernel is a header of buffers, parameters and assumptions, and a body of
statements, one per line, in blocks that are indented by four spaces."
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The text was not the name of a code.
///
/// ```
/// use tamis_ir::Code;
/// let unknown = "E9999".parse::<Code>().unwrap_err();
/// assert_eq!(unknown.to_string(), "there is no code `E9999`");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownCode(pub String);

impl fmt::Display for UnknownCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no code `{}`", self.0)
    }
}

impl std::error::Error for UnknownCode {}

impl FromStr for Code {
    type Err = UnknownCode;

    fn from_str(text: &str) -> Result<Code, UnknownCode> {
        let found = Code::ALL.iter().find(|code| code.name().eq_ignore_ascii_case(text));
        found.copied().ok_or_else(|| UnknownCode(text.to_string()))
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
