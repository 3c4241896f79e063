//! Workspaces: calls of the runtime, and insertion where a policy only appends.
//!
//! The pointers to workspaces follow those to scalars. A workspace begins with the number of its entries and how many
//! there is room for; its arrays are buffers of the kernel, whose descriptors are read again after every call: calls are given the
//! table of buffers, which nobody else may change.

use super::{DESCRIPTOR, Emitter, Val};
use crate::llvm::description;
use tamis_ir::kernel::{ExprId, Stmt, VarId, Workspace};

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
            Stmt::Settle { var, workspace } => {
                let handle = self.handle(workspace);
                self.declare("tamis_workspace_settle", || {
                    "declare i64 @tamis_workspace_settle(ptr, ptr, ptr) nounwind".into()
                });
                let count =
                    self.op(format!("call i64 @tamis_workspace_settle(ptr {handle}, ptr %buffers, ptr %failure)"));
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
        for buffer in workspace.buffers() {
            let at = self.op(format!("getelementptr i8, ptr %buffers, i64 {}", DESCRIPTOR * buffer.index()));
            let data = self.op(format!("load ptr, ptr {at}, align 8"));
            let place = self.places[buffer.index()].data.clone();
            self.line(format!("store ptr {data}, ptr {place}"));
        }
    }

    fn insert(&mut self, var: VarId, workspace: &Workspace, coordinates: &[ExprId]) {
        let coordinates: Vec<String> = coordinates.iter().map(|e| self.index(*e)).collect();
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
            for (buffer, coordinate) in workspace.coordinates.iter().zip(&coordinates) {
                self.store(*buffer, &count, &Val::One(coordinate.clone()));
            }
            let start = self.constant(workspace.start);
            self.store(workspace.values, &count, &start);
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
