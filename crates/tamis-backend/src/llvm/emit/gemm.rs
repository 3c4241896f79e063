//! LLVM IR of GEMM: a call of the runtime.

use super::{Emitter, ty};
use tamis_ir::kernel::{Gemm, MatrixView};
use tamis_ir::{DType, Value};

impl Emitter<'_> {
    pub(super) fn gemm(&mut self, gemm: &Gemm) {
        let Some(dtype) = gemm.dtype(self.kernel) else { return };
        let sizes = gemm.sizes.map(|size| self.index(size));
        let alpha = self.value(gemm.alpha).re().to_string();
        let [m, n, k] = [&sizes[0], &sizes[1], &sizes[2]];
        let views = [(gemm.c, [m, n]), (gemm.a, [m, k]), (gemm.b, [k, n])].map(|(view, extents)| {
            let (offset, strides) = (self.index(view.offset), view.strides.map(|stride| self.index(stride)));
            self.view_in_bounds(view, &offset, &strides, &sizes, extents);
            let data = self.data(view.buffer);
            let address = self.op(format!("getelementptr {}, ptr {data}, i64 {offset}", ty(dtype)));
            (address, self.array(&strides))
        });
        let sizes = self.array(&sizes);
        let name = format!("tamis_gemm_{dtype}");
        let pointers = ["ptr"; 6].join(", ");
        self.declare(&name, || format!("declare void @{name}(ptr, {}, {pointers}) nounwind", ty(dtype)));
        let views: Vec<String> =
            views.iter().map(|(address, strides)| format!("ptr {address}, ptr {strides}")).collect();
        self.line(format!("call void @{name}(ptr {sizes}, {} {alpha}, {})", ty(dtype), views.join(", ")));
    }

    /// An array of numbers on the stack.
    fn array(&mut self, numbers: &[String]) -> String {
        let name = format!("%{}", self.fresh("numbers"));
        self.at_entry(format!("{name} = alloca [{} x i64]", numbers.len()));
        for (k, number) in numbers.iter().enumerate() {
            let address = self.op(format!("getelementptr i64, ptr {name}, i64 {k}"));
            self.line(format!("store i64 {number}, ptr {address}"));
        }
        name
    }

    /// In check mode: fails unless the corners of a matrix are in bounds, if there is anything to
    /// multiply.
    fn view_in_bounds(
        &mut self,
        view: MatrixView,
        offset: &str,
        strides: &[String; 2],
        sizes: &[String; 3],
        extents: [&String; 2],
    ) {
        if !self.check {
            return;
        }
        let (inside, after) = (self.fresh("product"), self.fresh("checked"));
        let mut least = sizes[0].clone();
        for size in &sizes[1..] {
            least = self.intrinsic("smin", DType::I64, &[&least, size]);
        }
        let any = self.op(format!("icmp sgt i64 {least}, 0"));
        self.fork(&any, &inside, &after);
        self.start(&inside);
        let zero = self.constant(Value::I64(0)).re().to_string();
        let [rows, columns] = [0, 1].map(|k| {
            let last = self.op(format!("sub i64 {}, 1", extents[k]));
            self.op(format!("mul i64 {last}, {}", strides[k]))
        });
        for (row, column) in [(&zero, &zero), (&rows, &zero), (&zero, &columns), (&rows, &columns)] {
            let first = self.op(format!("add i64 {offset}, {row}"));
            let corner = self.op(format!("add i64 {first}, {column}"));
            self.in_bounds(view.buffer, &corner);
        }
        self.jump(&after);
        self.start(&after);
    }
}
