// Eigen by C calls: matrices by rows over arrays of the caller, results that Eigen holds.
#include <Eigen/Core>
#include <Eigen/SparseCore>
#include <cstdint>

template <class Scalar, int Order> using Sparse = Eigen::SparseMatrix<Scalar, Order, int32_t>;
template <class Scalar> using Dense = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Rows = Sparse<double, Eigen::RowMajor>;
using Columns = Sparse<double, Eigen::ColMajor>;
using Vector = Eigen::VectorXd;

// A matrix as NumPy has it.
struct Matrix {
    int64_t rows, columns, entries;
    const int32_t *pos, *crd;
    const void *val;

    template <class Scalar, int Order> Eigen::Map<const Sparse<Scalar, Order>> view() const {
        return {rows, columns, entries, pos, crd, static_cast<const Scalar *>(val)};
    }
    Eigen::Map<const Rows> by_rows() const { return view<double, Eigen::RowMajor>(); }
    Eigen::Map<const Columns> by_columns() const { return view<double, Eigen::ColMajor>(); }
};

extern "C" {

const char *version() {
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
    return TEXT(EIGEN_WORLD_VERSION) "." TEXT(EIGEN_MAJOR_VERSION) "." TEXT(EIGEN_MINOR_VERSION);
}

void set_threads(int n) { Eigen::setNbThreads(n); }

void spmv(const Matrix *a, const double *x, double *y) {
    Eigen::Map<Vector>(y, a->rows).noalias() = a->by_rows() * Eigen::Map<const Vector>(x, a->columns);
}

void spmv_csc(const Matrix *a, const double *x, double *y) {
    Eigen::Map<Vector>(y, a->rows).noalias() = a->by_columns() * Eigen::Map<const Vector>(x, a->columns);
}

void spmv_symmetric(const Matrix *upper, const double *x, double *y) {
    Eigen::Map<Vector>(y, upper->rows).noalias() =
        upper->by_rows().selfadjointView<Eigen::Upper>() * Eigen::Map<const Vector>(x, upper->columns);
}

void spmm_f64(const Matrix *a, int64_t n, const double *b, double *c) {
    Eigen::Map<Dense<double>>(c, a->rows, n).noalias() = a->by_rows() * Eigen::Map<const Dense<double>>(b, a->columns, n);
}

void spmm_f32(const Matrix *a, int64_t n, const float *b, float *c) {
    Eigen::Map<Dense<float>>(c, a->rows, n).noalias() =
        a->view<float, Eigen::RowMajor>() * Eigen::Map<const Dense<float>>(b, a->columns, n);
}

// The loop that Eigen's users write: it has no such product.
void sddmm(const Matrix *s, int64_t n, const double *p, const double *q, double *out) {
    Eigen::Map<const Dense<double>> left(p, s->rows, n), right(q, s->columns, n);
    const double *val = static_cast<const double *>(s->val);
#pragma omp parallel for schedule(dynamic, 256) num_threads(Eigen::nbThreads())
    for (int64_t i = 0; i < s->rows; i++)
        for (int32_t at = s->pos[i]; at < s->pos[i + 1]; at++)
            out[at] = val[at] * left.row(i).dot(right.row(s->crd[at]));
}

Rows *spgemm(const Matrix *a, const Matrix *b) { return new Rows(a->by_rows() * b->by_rows()); }
Rows *spgemm_transposed(const Matrix *a) { return new Rows(a->by_rows() * Rows(a->by_rows().transpose())); }
Rows *add(const Matrix *a, const Matrix *b) { return new Rows(a->by_rows() + b->by_rows()); }
Rows *add_three(const Matrix *a, const Matrix *b, const Matrix *c) {
    return new Rows(a->by_rows() + b->by_rows() + c->by_rows());
}
Rows *multiply(const Matrix *a, const Matrix *b) { return new Rows(a->by_rows().cwiseProduct(b->by_rows())); }
Rows *transpose(const Matrix *a) { return new Rows(a->by_rows().transpose()); }

void describe(const Rows *m, Matrix *out) {
    *out = {m->rows(), m->cols(), m->nonZeros(), m->outerIndexPtr(), m->innerIndexPtr(), m->valuePtr()};
}
void release(Rows *m) { delete m; }
}
