//! LLVM IR of workspace statements: runtime calls, and inline appends for policies that only
//! append.
//!
//! The scalar table continues with the pointers to workspaces. A workspace begins with its number
//! of entries and its capacity; its arrays are buffers of the kernel. Calls receive the buffer
//! table, and the data pointers are reloaded after every call.
//!
//! A loop that appends one entry per iteration is strip-mined into runs that fit the capacity. All
//! iterations of a run compute their positions from the start of the run, so that none depends on
//! the count that the previous one has stored.

use super::{Emitter, Val};
use crate::llvm::workspace_spec;
use tamis_ir::kernel::{ExprId, Hint, Stmt, VarId, Workspace};

/// A run of appending iterations: the current and the first iteration, and the position of the
/// first entry.
pub(super) struct AppendRun {
    iteration: String,
    first: String,
    position: String,
}

impl Emitter<'_> {
    pub(super) fn workspace(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Reset { workspace, sizes } => {
                let sizes = self.tuple(workspace, sizes);
                let handle = self.handle(workspace);
                self.declare("tamis_workspace_reset", || {
                    "declare i64 @tamis_workspace_reset(ptr, ptr, ptr, ptr) nounwind".into()
                });
                let done = self.op(format!(
                    "call i64 @tamis_workspace_reset(ptr {handle}, ptr %buffers, ptr {sizes}, ptr %failure)"
                ));
                self.check_result(workspace, &done);
            }
            Stmt::Insert { var, workspace, coordinates } => self.insert(*var, workspace, coordinates),
            Stmt::Finalize { var, workspace } => {
                let handle = self.handle(workspace);
                self.declare("tamis_workspace_finalize", || {
                    "declare i64 @tamis_workspace_finalize(ptr, ptr, ptr) nounwind".into()
                });
                let count =
                    self.op(format!("call i64 @tamis_workspace_finalize(ptr {handle}, ptr %buffers, ptr %failure)"));
                self.check_result(workspace, &count);
                self.define(*var, Val::One(count));
            }
            _ => {}
        }
    }

    /// The pointer to a workspace.
    fn handle(&mut self, workspace: &Workspace) -> String {
        let id = self.facts.workspaces.iter().position(|other| other.values == workspace.values).unwrap_or(0);
        let name = format!("workspace{id}");
        if !self.handles.contains(&id) {
            self.handles.push(id);
            let at = self.kernel.params.len() + id;
            self.at_entry(format!("%{name}.at = getelementptr ptr, ptr %scalars, i64 {at}"));
            self.at_entry(format!("%{name} = load ptr, ptr %{name}.at, align 8"));
            self.at_entry(format!("%{name}.tuple = alloca [{} x i64]", workspace.coordinates.len().max(1)));
        }
        format!("%{name}")
    }

    /// Stores coordinates or sizes on the stack, for the runtime to read.
    fn tuple(&mut self, workspace: &Workspace, numbers: &[ExprId]) -> String {
        let numbers: Vec<String> = numbers.iter().map(|e| self.index(*e)).collect();
        self.store_tuple(workspace, &numbers)
    }

    fn store_tuple(&mut self, workspace: &Workspace, numbers: &[String]) -> String {
        let tuple = format!("{}.tuple", self.handle(workspace));
        for (k, number) in numbers.iter().enumerate() {
            let at = self.op(format!("getelementptr i64, ptr {tuple}, i64 {k}"));
            self.line(format!("store i64 {number}, ptr {at}, align 8"));
        }
        tuple
    }

    /// Checks the result of a runtime call: a negative one is a failure. Reloads the data pointers.
    fn check_result(&mut self, workspace: &Workspace, result: &str) {
        let succeeded = self.op(format!("icmp sge i64 {result}, 0"));
        let (ok, failed) = (self.fresh("ok"), self.fresh("failed"));
        self.line(format!("br i1 {succeeded}, label %{ok}, label %{failed}, !prof !0"));
        self.start(&failed);
        let status = self.op(format!("sub i64 0, {result}"));
        let status = self.op(format!("trunc i64 {status} to i32"));
        self.line(format!("ret i32 {status}"));
        self.start(&ok);
        workspace.buffers().for_each(|buffer| self.reload_data(buffer));
    }

    /// Emits a loop that appends one entry per iteration; returns `false`, with nothing emitted,
    /// for other loops.
    pub(super) fn append_loop(&mut self, stmt: &Stmt) -> bool {
        let Stmt::For { var, start, stop, body, .. } = stmt else { return false };
        let mut inserts = body.iter().filter_map(|stmt| match stmt {
            Stmt::Insert { workspace, .. } => Some(workspace),
            _ => None,
        });
        let (Some(workspace), None) = (inserts.next(), inserts.next()) else { return false };
        // No statement may exit the loop before the count is stored.
        let plain = |stmt: &Stmt| matches!(stmt, Stmt::Let { .. } | Stmt::Store { .. } | Stmt::Insert { .. });
        if self.check || !body.iter().all(plain) || !workspace_spec(self.kernel, workspace).appends() {
            return false;
        }
        let (start, stop) = (self.index(*start), self.index(*stop));
        let handle = self.handle(workspace);
        let counter = format!("%{}", self.fresh("iteration"));
        self.at_entry(format!("{counter} = alloca i64"));
        self.line(format!("store i64 {start}, ptr {counter}"));
        let [head, inside, full, append, after] =
            ["append", "append.check", "append.full", "append.loop", "append.end"].map(|name| self.fresh(name));
        self.jump(&head);
        self.start(&head);
        let first = self.op(format!("load i64, ptr {counter}"));
        let more = self.op(format!("icmp slt i64 {first}, {stop}"));
        self.fork(&more, &inside, &after);
        self.start(&inside);
        let count = self.op(format!("load i64, ptr {handle}, align 8"));
        let limit = self.op(format!("getelementptr i8, ptr {handle}, i64 8"));
        let limit = self.op(format!("load i64, ptr {limit}, align 8"));
        let fits = self.op(format!("icmp ult i64 {count}, {limit}"));
        self.line(format!("br i1 {fits}, label %{append}, label %{full}, !prof !0"));
        self.start(&full);
        self.declare("tamis_workspace_reserve", || {
            "declare i64 @tamis_workspace_reserve(ptr, ptr, ptr) nounwind".into()
        });
        let made = self.op(format!("call i64 @tamis_workspace_reserve(ptr {handle}, ptr %buffers, ptr %failure)"));
        self.check_result(workspace, &made);
        self.jump(&head);
        self.start(&append);
        let (space, trip_count) =
            (self.op(format!("sub i64 {limit}, {count}")), self.op(format!("sub i64 {stop}, {first}")));
        let less = self.op(format!("icmp ult i64 {space}, {trip_count}"));
        let run_length = self.op(format!("select i1 {less}, i64 {space}, i64 {trip_count}"));
        let last = self.op(format!("add i64 {first}, {run_length}"));
        let name = self.kernel.var(*var).name.clone();
        self.count(&name, &first, &last, 1, Hint::default(), |e, iteration| {
            e.define(*var, Val::One(iteration.to_string()));
            let run = AppendRun { iteration: iteration.to_string(), first: first.clone(), position: count.clone() };
            let outer = e.append_run.replace(run);
            e.stmts(body);
            e.append_run = outer;
        });
        let count = self.op(format!("add i64 {count}, {run_length}"));
        self.line(format!("store i64 {count}, ptr {handle}, align 8"));
        self.line(format!("store i64 {last}, ptr {counter}"));
        self.jump(&head);
        self.start(&after);
        true
    }

    /// Stores a new entry.
    fn append(&mut self, workspace: &Workspace, position: &str, coordinates: &[String]) {
        for (buffer, coordinate) in workspace.coordinates.iter().zip(coordinates) {
            self.store(*buffer, position, &Val::One(coordinate.clone()));
        }
        let start = self.constant(workspace.start);
        self.store(workspace.values, position, &start);
    }

    fn insert(&mut self, var: VarId, workspace: &Workspace, coordinates: &[ExprId]) {
        let coordinates: Vec<String> = coordinates.iter().map(|e| self.index(*e)).collect();
        if let Some(AppendRun { iteration, first, position }) = &self.append_run {
            let (done, position) = (format!("sub nsw i64 {iteration}, {first}"), position.clone());
            let done = self.op(done);
            let position = self.op(format!("add nsw i64 {position}, {done}"));
            self.append(workspace, &position, &coordinates);
            return self.define(var, Val::One(position));
        }
        let handle = self.handle(workspace);
        let result = format!("%{}", self.fresh("position"));
        self.at_entry(format!("{result} = alloca i64"));
        let (append, full, after) = (self.fresh("append"), self.fresh("full"), self.fresh("inserted"));
        let appends = workspace_spec(self.kernel, workspace).appends();
        if appends {
            let count = self.op(format!("load i64, ptr {handle}, align 8"));
            let limit = self.op(format!("getelementptr i8, ptr {handle}, i64 8"));
            let limit = self.op(format!("load i64, ptr {limit}, align 8"));
            let fits = self.op(format!("icmp ult i64 {count}, {limit}"));
            self.line(format!("br i1 {fits}, label %{append}, label %{full}, !prof !0"));
            self.start(&append);
            self.append(workspace, &count, &coordinates);
            let next = self.op(format!("add i64 {count}, 1"));
            self.line(format!("store i64 {next}, ptr {handle}, align 8"));
            self.line(format!("store i64 {count}, ptr {result}"));
            self.jump(&after);
            self.start(&full);
        }
        let tuple = self.store_tuple(workspace, &coordinates);
        self.declare("tamis_workspace_insert", || {
            "declare i64 @tamis_workspace_insert(ptr, ptr, ptr, ptr) nounwind".into()
        });
        let position =
            self.op(format!("call i64 @tamis_workspace_insert(ptr {handle}, ptr %buffers, ptr {tuple}, ptr %failure)"));
        self.check_result(workspace, &position);
        self.line(format!("store i64 {position}, ptr {result}"));
        self.jump(&after);
        self.start(&after);
        let position = self.op(format!("load i64, ptr {result}"));
        self.define(var, Val::One(position));
    }
}
