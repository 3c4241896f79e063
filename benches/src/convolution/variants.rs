//! Program variants of the convolution benchmarks: loop orders, and formats of inputs and results.

/// A variant: a name, the input's format, and the program.
pub type Variant<'a> = (&'static str, &'static str, &'a str);

/// One dimension.
pub const ONE: [Variant<'static>; 3] = [
    (
        "windows, sparse result",
        "sparse",
        "def f(I, F):\n    O = tensor(\"sparse\")\n    for i, k in _:\n        O[i] += I[i+k] * F[k]\n    return O\n",
    ),
    (
        "windows, dense result",
        "sparse",
        "def f(I, F):\n    O = tensor(\"dense\")\n    for i, k in _:\n        O[i] += I[i+k] * F[k]\n    return O\n",
    ),
    (
        "filter first, dense result",
        "sparse",
        "def f(I, F):\n    O = tensor(\"dense\")\n    for k, i in _:\n        O[i] += I[i+k] * F[k]\n    return O\n",
    ),
];

/// Two dimensions.
pub const TWO: [Variant<'static>; 5] = [
    (
        "windows, sparse result",
        "csr",
        "def f(I, F):\n    O = tensor(\"csr\")\n    for i in _:\n        w = tensor(\"bytemap\")\n        for k, j, l in _:\n            w[j] += I[i+k,j+l] * F[k,l]\n        for j in _:\n            O[i,j] = w[j]\n    return O\n",
    ),
    (
        "filter first, sparse result",
        "csr",
        "def f(I, F):\n    O = tensor(\"csr\")\n    for i in _:\n        w = tensor(\"bytemap\")\n        for k, l, j in _:\n            w[j] += I[i+k,j+l] * F[k,l]\n        for j in _:\n            O[i,j] = w[j]\n    return O\n",
    ),
    (
        "windows, dense result",
        "csr",
        "def f(I, F):\n    O = tensor(\"dense\")\n    for i, k, j, l in _:\n        O[i,j] += I[i+k,j+l] * F[k,l]\n    return O\n",
    ),
    (
        "filter first, dense result",
        "csr",
        "def f(I, F):\n    O = tensor(\"dense\")\n    for i, k, l, j in _:\n        O[i,j] += I[i+k,j+l] * F[k,l]\n    return O\n",
    ),
    (
        "entries first, dense result",
        "csr",
        "def f(I, F):\n    O = tensor(\"dense\", shape=(I.shape[0] - F.shape[0] + 1, I.shape[1] - F.shape[1] + 1))\n    for i, j, k, l in _:\n        O[~(i-k),~(j-l)] += I[i,j] * F[k,l]\n    return O\n",
    ),
];

/// Three dimensions.
pub const THREE: [Variant<'static>; 6] = [
    (
        "windows, sparse result",
        "csf",
        "def f(I, F):\n    O = tensor(\"csf\")\n    for i in _:\n        w = tensor(\"dense, bytemap\")\n        for k, j, l, m, n in _:\n            w[j,m] += I[i+k,j+l,m+n] * F[k,l,n]\n        for j, m in _:\n            O[i,j,m] = w[j,m]\n    return O\n",
    ),
    (
        "filter first, sparse result",
        "csf",
        "def f(I, F):\n    O = tensor(\"dense, dense, sparse\")\n    for i, j in _:\n        w = tensor(\"bytemap\")\n        for k, l, n, m in _:\n            w[m] += I[i+k,j+l,m+n] * F[k,l,n]\n        for m in _:\n            O[i,j,m] = w[m]\n    return O\n",
    ),
    (
        "windows, dense result",
        "csf",
        "def f(I, F):\n    O = tensor(\"dense\")\n    for i, k, j, l, m, n in _:\n        O[i,j,m] += I[i+k,j+l,m+n] * F[k,l,n]\n    return O\n",
    ),
    (
        "filter first, dense result",
        "dense, dense, sparse",
        "def f(I, F):\n    O = tensor(\"dense\")\n    for i, j, k, l, n, m in _:\n        O[i,j,m] += I[i+k,j+l,m+n] * F[k,l,n]\n    return O\n",
    ),
    (
        "entries first, dense result",
        "csf",
        "def f(I, F):\n    O = tensor(\"dense\", shape=(I.shape[0] - F.shape[0] + 1, I.shape[1] - F.shape[1] + 1, I.shape[2] - F.shape[2] + 1))\n    for i, j, m, k, l, n in _:\n        O[~(i-k),~(j-l),~(m-n)] += I[i,j,m] * F[k,l,n]\n    return O\n",
    ),
    (
        "filter outside, dense result",
        "csf",
        "def f(I, F):\n    O = tensor(\"dense\")\n    for k, i, l, j, n, m in _:\n        O[i,j,m] += I[i+k,j+l,m+n] * F[k,l,n]\n    return O\n",
    ),
];

/// Scatter variants for filters of three per side: as in C for such filters, loops over the filter
/// have a constant trip count. Entries near the border, where part of the result is out of bounds,
/// have separate loops.
pub fn entries_first(rank: usize) -> String {
    let (loops, filter) = (&["i", "j", "m"][..rank], &["k", "l", "n"][..rank]);
    let sizes: Vec<String> = (0..rank).map(|d| format!("I.shape[{d}] - 2")).collect();
    let mut text = format!("def f(I, F):\n    O = tensor(\"dense\", shape=({},))\n", sizes.join(", "));
    let body = |text: &mut String, depth: usize, border: bool| {
        let mut depth = depth;
        for index in filter {
            *text += &format!("{}for {index} in range(3):\n", "    ".repeat(depth));
            depth += 1;
        }
        let place = |(i, k): (&&str, &&str)| if border { format!("~({i}-{k})") } else { format!("{i}-{k}") };
        let places: Vec<String> = loops.iter().zip(filter).map(place).collect();
        let (places, loops, filter) = (places.join(","), loops.join(","), filter.join(","));
        *text += &format!("{}O[{places}] += I[{loops}] * F[{filter}]\n", "    ".repeat(depth));
    };
    for d in 0..rank {
        let pad = "    ".repeat(d + 1);
        for range in ["range(2)".to_string(), format!("range(I.shape[{d}] - 2, I.shape[{d}])")] {
            text += &format!("{pad}for {} in {range}:\n", loops[d]);
            for (inner, index) in loops.iter().enumerate().skip(d + 1) {
                text += &format!("{}for {index} in _:\n", "    ".repeat(inner + 1));
            }
            body(&mut text, rank + 1, true);
        }
        text += &format!("{pad}for {} in range(2, I.shape[{d}] - 2):\n", loops[d]);
    }
    body(&mut text, rank + 1, false);
    text += "    return O\n";
    text
}

/// Index notation for one to three dimensions: Tamis chooses loop orders and result formats.
pub const NOTATIONS: [&str; 3] =
    ["O[i] = I[i+k] * F[k]", "O[i,j] = I[i+k,j+l] * F[k,l]", "O[i,j,m] = I[i+k,j+l,m+n] * F[k,l,n]"];

/// The format of inputs for index notation.
pub const GIVEN: [&str; 3] = ["sparse", "csr", "csf"];

/// A layer variant: a name, the formats of the input (rows, columns, channels) and of the filter
/// (rows, columns, channels, results), and the program.
pub type Layer = (&'static str, &'static str, &'static str, &'static str);

/// 3 x 3 layers with a padding of one, with a sparse input.
pub const SPARSE_INPUTS: [Layer; 4] = [
    (
        "pixels first",
        "dense, dense, sparse",
        "dense",
        "def f(I, F):\n    O = tensor(\"dense\")\n    for h, w, r, q, c, g in _:\n        O[h,w,g] += coalesce(I[~(h+r-1),~(w+q-1),c], 0) * F[r,q,c,g]\n    return O\n",
    ),
    (
        "filter outside",
        "dense, dense, sparse",
        "dense",
        "def f(I, F):\n    O = tensor(\"dense\")\n    for r, q, h, w, c, g in _:\n        O[h,w,g] += coalesce(I[~(h+r-1),~(w+q-1),c], 0) * F[r,q,c,g]\n    return O\n",
    ),
    (
        "entries first",
        "dense, dense, sparse",
        "dense",
        "def f(I, F):\n    O = tensor(\"dense\", shape=(I.shape[0], I.shape[1], F.shape[3]))\n    for h, w, c, r, q, g in _:\n        O[~(h-r+1),~(w-q+1),g] += I[h,w,c] * F[r,q,c,g]\n    return O\n",
    ),
    (
        "channels first",
        "(h,w,c) -> (c,h,w): dense, sparse, sparse",
        "dense",
        "def f(I, F):\n    O = tensor(\"dense\", shape=(I.shape[0], I.shape[1], F.shape[3]))\n    for c, r, q, h, w, g in _:\n        O[~(h-r+1),~(w-q+1),g] += I[h,w,c] * F[r,q,c,g]\n    return O\n",
    ),
];

/// The same layers with a sparse filter: rows of pixels are vectorised, so channels are outermost.
pub const SPARSE_FILTERS: [Layer; 2] = [
    (
        "planes",
        "(h,w,c) -> (c,h,w): dense, dense, dense",
        "(r,q,c,g) -> (g,c,r,q): dense, sparse, sparse, sparse",
        "def f(I, F):\n    O = tensor(\"(h,w,g) -> (g,h,w): dense, dense, dense\")\n    for g, c, r, q, h, w in _:\n        O[h,w,g] += coalesce(I[~(h+r-1),~(w+q-1),c], 0) * F[r,q,c,g]\n    return O\n",
    ),
    (
        "rows of planes",
        "(h,w,c) -> (c,h,w): dense, dense, dense",
        "(r,q,c,g) -> (g,c,r,q): dense, sparse, sparse, sparse",
        "def f(I, F):\n    O = tensor(\"(h,w,g) -> (g,h,w): dense, dense, dense\")\n    for g, h, c, r, q, w in _:\n        O[h,w,g] += coalesce(I[~(h+r-1),~(w+q-1),c], 0) * F[r,q,c,g]\n    return O\n",
    ),
];

/// Index notation for a layer.
pub const LAYER: &str = "O[h,w,g] = coalesce(I[~(h+r-1),~(w+q-1),c], 0) * F[r,q,c,g]";
