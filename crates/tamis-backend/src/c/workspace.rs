//! C workspaces: generated hash tables over the arrays of a workspace, since C files do not link
//! the runtime.
//!
//! The table finds every entry on insertion, so nothing is merged later. Policies and capacities
//! apply to the runtime only.

use super::helpers::Helper;
use super::{Printer, stored};
use crate::failure::Status;
use std::fmt::Write;
use tamis_ir::kernel::{BufferId, Expr, ExprId, Role, Stmt, VarId, Workspace};

const TABLE: &str = "/* Open-addressing hash table of entries: a slot holds the position of an entry plus one, or 0. */
typedef struct {
    int64_t *slots, mask, count;
} tamis_table;
";

impl Printer<'_> {
    /// Prints a statement on a workspace.
    pub(super) fn workspace(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Reset { workspace, sizes } => {
                // Tables need no sizes; the casts avoid warnings about unused variables.
                for size in sizes {
                    if let Expr::Var(var) = self.kernel.expr(*size) {
                        let name = self.vars[var.index()].clone();
                        self.line(format!("(void){name};"));
                    }
                }
                let table = self.table(workspace);
                self.line(format!("free({table}.slots);"));
                self.line(format!("{table} = (tamis_table){{0}};"));
            }
            Stmt::Insert { var, workspace, coordinates } => {
                let coordinates: Vec<String> = coordinates.iter().map(|e: &ExprId| self.implicit(*e)).collect();
                self.call_table_function(workspace, "insert", *var, &coordinates);
            }
            Stmt::Finalize { var, workspace } => self.call_table_function(workspace, "finalize", *var, &[]),
            _ => {}
        }
    }

    /// The name of the hash table of a workspace.
    fn table(&mut self, workspace: &Workspace) -> String {
        self.helper(Helper { name: "tamis_table".into(), code: TABLE.into() });
        if let Some((_, name)) = self.tables.iter().find(|(values, _)| *values == workspace.values) {
            return name.clone();
        }
        let name = self.names.fresh(&format!("{}_table", workspace.name));
        self.tables.push((workspace.values, name.clone()));
        name
    }

    fn address(&self, buffer: BufferId) -> (String, &'static str) {
        let descriptor = self.buffers[buffer.index()].descriptor.clone().unwrap_or_default();
        match self.kernel.buffer(buffer).role {
            Role::Output => (descriptor, "->"),
            _ => (format!("&{descriptor}"), "."),
        }
    }

    /// Prints the call of a workspace function; a negative result is a failure.
    fn call_table_function(&mut self, workspace: &Workspace, function: &str, var: VarId, more: &[String]) {
        let table = self.table(workspace);
        let prefix = self.define(workspace);
        let mut arguments = vec![format!("&{table}")];
        arguments.extend(workspace.buffers().map(|buffer| self.address(buffer).0));
        arguments.extend_from_slice(more);
        self.declare(var, &format!("{prefix}_{function}({})", arguments.join(", ")));
        let name = self.vars[var.index()].clone();
        self.line(format!("if ({name} < 0)"));
        self.fail(Status::Memory, workspace.values.index(), &format!("{table}.count"));
        for buffer in workspace.buffers() {
            let Some(descriptor) = self.buffers[buffer.index()].descriptor.clone() else { continue };
            if !self.facts.accessed[buffer.index()] {
                continue;
            }
            let (_, dot) = self.address(buffer);
            let data = self.buffers[buffer.index()].data.clone();
            self.line(format!("{data} = {descriptor}{dot}data;"));
        }
    }

    /// Prints the functions of a workspace; returns the prefix of their names.
    fn define(&mut self, workspace: &Workspace) -> String {
        let prefix = format!("tamis_workspace_{}", workspace.values.index());
        let n = workspace.coordinates.len();
        let elem = |buffer: &BufferId| self.kernel.buffer(*buffer).elem;
        let types: Vec<&str> = workspace.coordinates.iter().map(|b| stored(elem(b))).collect();
        let values = stored(elem(&workspace.values));
        let grows: Vec<String> =
            workspace.buffers().map(|b| self.helper(super::helpers::grow(elem(&b), false))).collect();
        let start = self.constant(workspace.start, super::expr::Prec::Lowest);
        let each = |f: &dyn Fn(usize) -> String, with: &str| (0..n).map(f).collect::<Vec<_>>().join(with);
        let buffers = each(&|k| format!("tamis_buffer *c{k}, "), "");
        let keys = each(&|k| format!(", int64_t k{k}"), "");
        let arrays = each(&|k| format!("    const {0} *crd{k} = c{k}->data;\n", types[k]), "");
        let equal = each(&|k| format!("(int64_t)crd{k}[position] == k{k}"), " && ");
        let equal = if n == 0 { "true".to_string() } else { equal };
        let hash = each(&|k| format!("    hash = (hash ^ (uint64_t)k{k}) * 0x9e3779b97f4a7c15u;\n"), "");
        let reserve: Vec<String> = (0..n)
            .map(|k| format!("{}(c{k}, t->count + 1)", grows[k]))
            .chain([format!("{}(values, t->count + 1)", grows[n])])
            .collect();
        let put = each(&|k| format!("    (({0} *)c{k}->data)[t->count] = ({0})k{k};\n", types[k]), "");
        let load_keys = each(&|k| format!(", (int64_t)crd{k}[e]"), "");
        let compare =
            each(&|k| format!("        if (crd{k}[a] != crd{k}[b])\n            return crd{k}[a] < crd{k}[b];\n"), "");
        let compare_arrays = each(&|k| format!("const {0} *crd{k}, ", types[k]), "");
        let pass_arrays = each(&|k| format!("crd{k}, "), "");
        let mut permute = String::new();
        for (name, ty) in (0..n).map(|k| (format!("c{k}"), types[k])).chain([("values".to_string(), values)]) {
            let _ = write!(
                permute,
                "    {ty} *{name}_from = {name}->data, *{name}_to = (void *)spare;\n    \
                 for (int64_t e = 0; e < n; e++)\n        {name}_to[e] = {name}_from[order[e]];\n    \
                 memcpy({name}_from, {name}_to, (size_t)n * sizeof({ty}));\n"
            );
        }
        let compare = compare.replace("        if", "    if").replace("            return", "        return");
        let keys_list = each(&|k| format!("int64_t k{k}"), ", ");
        let keys_list = if n == 0 { "void".into() } else { keys_list };
        let pass_keys = each(&|k| format!("k{k}"), ", ");
        let code = format!(
            "static uint64_t {prefix}_hash({keys_list})
{{
    uint64_t hash = 0;
{hash}    return hash >> 24;
}}

/* Finds or appends an entry and returns its position; -1 if out of memory. */
static int64_t {prefix}_insert(tamis_table *t, {buffers}tamis_buffer *values{keys})
{{
    if (2 * t->count >= t->mask) {{
        int64_t size = 16;
        while (size - 1 <= 2 * t->count)
            size *= 2;
        int64_t *slots = calloc((size_t)size, sizeof(int64_t));
        if (!slots)
            return -1;
        free(t->slots);
        t->slots = slots;
        t->mask = size - 1;
{rehash_arrays}        for (int64_t e = 0; e < t->count; e++) {{
            int64_t slot = (int64_t)({prefix}_hash({load}) & (uint64_t)t->mask);
            while (slots[slot])
                slot = (slot + 1) & t->mask;
            slots[slot] = e + 1;
        }}
    }}
{arrays}    int64_t slot = (int64_t)({prefix}_hash({pass_keys}) & (uint64_t)t->mask);
    for (; t->slots[slot]; slot = (slot + 1) & t->mask) {{
        const int64_t position = t->slots[slot] - 1;
        if ({equal})
            return position;
    }}
    if (!{reserve})
        return -1;
{put}    (({values} *)values->data)[t->count] = ({values}){start};
    t->slots[slot] = t->count + 1;
    return t->count++;
}}

static bool {prefix}_less({compare_arrays}int64_t a, int64_t b)
{{
{compare}    return a < b;
}}

/* Merge sorts the entries by coordinates and returns their number; -1 if out of memory. */
static int64_t {prefix}_finalize(tamis_table *t, {buffers}tamis_buffer *values)
{{
    const int64_t n = t->count;
    if (n <= 0)
        return 0;
    const size_t bytes = (size_t)n * 16;
    int64_t *order = malloc(bytes), *spare = malloc(bytes);
    if (!order || !spare) {{
        free(order);
        free(spare);
        return -1;
    }}
{arrays}    for (int64_t e = 0; e < n; e++)
        order[e] = e;
    for (int64_t width = 1; width < n; width *= 2) {{
        for (int64_t low = 0; low < n; low += 2 * width) {{
            const int64_t middle = low + width < n ? low + width : t->count;
            const int64_t high = middle + width < n ? middle + width : t->count;
            int64_t a = low, b = middle;
            for (int64_t e = low; e < high; e++) {{
                const bool second = a == middle || (b < high && {prefix}_less({pass_arrays}order[b], order[a]));
                spare[e] = second ? order[b++] : order[a++];
            }}
        }}
        int64_t *const sorted = spare;
        spare = order;
        order = sorted;
    }}
{permute}    free(order);
    free(spare);
    /* The entries have moved: the next insertion rebuilds the table. */
    free(t->slots);
    t->slots = NULL;
    t->mask = 0;
    return n;
}}
",
            rehash_arrays = arrays.replace("    const", "        const"),
            load = load_keys.trim_start_matches(", "),
            reserve = reserve.join(" || !"),
        );
        self.helper(Helper { name: prefix.clone(), code });
        prefix
    }
}
