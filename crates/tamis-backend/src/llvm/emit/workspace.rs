//! Workspaces: calls of the runtime, and insertion where a policy only appends.
//!
//! The pointers to workspaces follow those to scalars. A workspace begins with the number of its entries and how many
//! there is room for; its arrays are buffers of the kernel, whose descriptors are read again after every call: calls are given the
//! table of buffers, which nobody else may change.
//!
//! A loop each of whose turns appends one entry does so in stretches: as many turns as there is room for know their places
//! from the beginning, so that none waits for the count that the one before has written.

use super::{Emitter, Val};
use crate::llvm::description;
use tamis_ir::kernel::{ExprId, Hint, Stmt, VarId, Workspace};

/// A stretch of turns: the first of them, and the place of its entry.
pub(super) struct Stretch {
    turn: String,
    first: String,
    place: String,
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
                self.called(workspace, &done);
            }
            Stmt::Insert { var, workspace, coordinates } => self.insert(*var, workspace, coordinates),
            Stmt::Finalize { var, workspace } => {
                let handle = self.handle(workspace);
                self.declare("tamis_workspace_finalize", || {
                    "declare i64 @tamis_workspace_finalize(ptr, ptr, ptr) nounwind".into()
                });
                let count =
                    self.op(format!("call i64 @tamis_workspace_finalize(ptr {handle}, ptr %buffers, ptr %failure)"));
                self.called(workspace, &count);
                self.define(*var, Val::One(count));
            }
            _ => {}
        }
    }

    /// The pointer to a workspace.
    fn handle(&mut self, workspace: &Workspace) -> String {
        let number = self.facts.workspaces.iter().position(|other| other.values == workspace.values).unwrap_or(0);
        let name = format!("workspace{number}");
        if !self.handles.contains(&number) {
            self.handles.push(number);
            let at = self.kernel.params.len() + number;
            self.at_entry(format!("%{name}.at = getelementptr ptr, ptr %scalars, i64 {at}"));
            self.at_entry(format!("%{name} = load ptr, ptr %{name}.at, align 8"));
            self.at_entry(format!("%{name}.tuple = alloca [{} x i64]", workspace.coordinates.len().max(1)));
        }
        format!("%{name}")
    }

    /// Numbers on the stack, for the runtime to read.
    fn tuple(&mut self, workspace: &Workspace, numbers: &[ExprId]) -> String {
        let numbers: Vec<String> = numbers.iter().map(|e| self.index(*e)).collect();
        self.put(workspace, &numbers)
    }

    fn put(&mut self, workspace: &Workspace, numbers: &[String]) -> String {
        let place = format!("{}.tuple", self.handle(workspace));
        for (k, number) in numbers.iter().enumerate() {
            let at = self.op(format!("getelementptr i64, ptr {place}, i64 {k}"));
            self.line(format!("store i64 {number}, ptr {at}, align 8"));
        }
        place
    }

    /// After a call of the runtime: a negative result is a failure, and the arrays may be others.
    fn called(&mut self, workspace: &Workspace, result: &str) {
        let fine = self.op(format!("icmp sge i64 {result}, 0"));
        let (on, failed) = (self.fresh("on"), self.fresh("failed"));
        self.line(format!("br i1 {fine}, label %{on}, label %{failed}, !prof !0"));
        self.start(&failed);
        let status = self.op(format!("sub i64 0, {result}"));
        let status = self.op(format!("trunc i64 {status} to i32"));
        self.line(format!("ret i32 {status}"));
        self.start(&on);
        workspace.buffers().for_each(|buffer| self.find_again(buffer));
    }

    /// A loop each of whose turns appends one entry; `false`, and nothing done, if this is none.
    pub(super) fn append_loop(&mut self, stmt: &Stmt) -> bool {
        let Stmt::For { var, start, stop, body, .. } = stmt else { return false };
        let mut inserts = body.iter().filter_map(|stmt| match stmt {
            Stmt::Insert { workspace, .. } => Some(workspace),
            _ => None,
        });
        let (Some(workspace), None) = (inserts.next(), inserts.next()) else { return false };
        // Nothing that could leave the loop before the count is written.
        let plain = |stmt: &Stmt| matches!(stmt, Stmt::Let { .. } | Stmt::Store { .. } | Stmt::Insert { .. });
        if self.check || !body.iter().all(plain) || !description(self.kernel, workspace).appends() {
            return false;
        }
        let (start, stop) = (self.index(*start), self.index(*stop));
        let handle = self.handle(workspace);
        let turn = format!("%{}", self.fresh("turn"));
        self.at_entry(format!("{turn} = alloca i64"));
        self.line(format!("store i64 {start}, ptr {turn}"));
        let [head, inside, full, room, after] =
            ["stretch", "stretch.in", "stretch.full", "stretch.room", "stretch.end"].map(|name| self.fresh(name));
        self.jump(&head);
        self.start(&head);
        let first = self.op(format!("load i64, ptr {turn}"));
        let more = self.op(format!("icmp slt i64 {first}, {stop}"));
        self.fork(&more, &inside, &after);
        self.start(&inside);
        let count = self.op(format!("load i64, ptr {handle}, align 8"));
        let limit = self.op(format!("getelementptr i8, ptr {handle}, i64 8"));
        let limit = self.op(format!("load i64, ptr {limit}, align 8"));
        let fits = self.op(format!("icmp ult i64 {count}, {limit}"));
        self.line(format!("br i1 {fits}, label %{room}, label %{full}, !prof !0"));
        self.start(&full);
        self.declare("tamis_workspace_room", || "declare i64 @tamis_workspace_room(ptr, ptr, ptr) nounwind".into());
        let made = self.op(format!("call i64 @tamis_workspace_room(ptr {handle}, ptr %buffers, ptr %failure)"));
        self.called(workspace, &made);
        self.jump(&head);
        self.start(&room);
        let (left, turns) = (self.op(format!("sub i64 {limit}, {count}")), self.op(format!("sub i64 {stop}, {first}")));
        let less = self.op(format!("icmp ult i64 {left}, {turns}"));
        let turns = self.op(format!("select i1 {less}, i64 {left}, i64 {turns}"));
        let last = self.op(format!("add i64 {first}, {turns}"));
        let name = self.kernel.var(*var).name.clone();
        self.count(&name, &first, &last, 1, Hint::default(), |e, turn| {
            e.define(*var, Val::One(turn.to_string()));
            let stretch = Stretch { turn: turn.to_string(), first: first.clone(), place: count.clone() };
            let outer = e.stretch.replace(stretch);
            e.stmts(body);
            e.stretch = outer;
        });
        let count = self.op(format!("add i64 {count}, {turns}"));
        self.line(format!("store i64 {count}, ptr {handle}, align 8"));
        self.line(format!("store i64 {last}, ptr {turn}"));
        self.jump(&head);
        self.start(&after);
        true
    }

    /// Writes a new entry.
    fn append(&mut self, workspace: &Workspace, place: &str, coordinates: &[String]) {
        for (buffer, coordinate) in workspace.coordinates.iter().zip(coordinates) {
            self.store(*buffer, place, &Val::One(coordinate.clone()));
        }
        let start = self.constant(workspace.start);
        self.store(workspace.values, place, &start);
    }

    fn insert(&mut self, var: VarId, workspace: &Workspace, coordinates: &[ExprId]) {
        let coordinates: Vec<String> = coordinates.iter().map(|e| self.index(*e)).collect();
        if let Some(Stretch { turn, first, place }) = &self.stretch {
            let (done, place) = (format!("sub nsw i64 {turn}, {first}"), place.clone());
            let done = self.op(done);
            let place = self.op(format!("add nsw i64 {place}, {done}"));
            self.append(workspace, &place, &coordinates);
            return self.define(var, Val::One(place));
        }
        let handle = self.handle(workspace);
        let result = format!("%{}", self.fresh("place"));
        self.at_entry(format!("{result} = alloca i64"));
        let (room, full, after) = (self.fresh("room"), self.fresh("full"), self.fresh("inserted"));
        let appends = description(self.kernel, workspace).appends();
        if appends {
            let count = self.op(format!("load i64, ptr {handle}, align 8"));
            let limit = self.op(format!("getelementptr i8, ptr {handle}, i64 8"));
            let limit = self.op(format!("load i64, ptr {limit}, align 8"));
            let fits = self.op(format!("icmp ult i64 {count}, {limit}"));
            self.line(format!("br i1 {fits}, label %{room}, label %{full}, !prof !0"));
            self.start(&room);
            self.append(workspace, &count, &coordinates);
            let next = self.op(format!("add i64 {count}, 1"));
            self.line(format!("store i64 {next}, ptr {handle}, align 8"));
            self.line(format!("store i64 {count}, ptr {result}"));
            self.jump(&after);
            self.start(&full);
        }
        let tuple = self.put(workspace, &coordinates);
        self.declare("tamis_workspace_insert", || {
            "declare i64 @tamis_workspace_insert(ptr, ptr, ptr, ptr) nounwind".into()
        });
        let place =
            self.op(format!("call i64 @tamis_workspace_insert(ptr {handle}, ptr %buffers, ptr {tuple}, ptr %failure)"));
        self.called(workspace, &place);
        self.line(format!("store i64 {place}, ptr {result}"));
        self.jump(&after);
        self.start(&after);
        let place = self.op(format!("load i64, ptr {result}"));
        self.define(var, Val::One(place));
    }
}
